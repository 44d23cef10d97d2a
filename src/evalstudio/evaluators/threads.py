from ..threads import DaemonPool as DaemonPool
from ..threads import blocking as blocking
