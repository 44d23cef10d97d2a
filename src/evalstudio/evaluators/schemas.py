from ..schemas import *  # noqa: F403
from ..schemas import (
    InvalidSchema as InvalidSchema,
)
from ..schemas import (
    Schema as Schema,
)
from ..schemas import (
    compile_schema as compile_schema,
)
from ..schemas import (
    path_text as path_text,
)
from ..schemas import (
    problems as problems,
)
