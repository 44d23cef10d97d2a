// A new monitor.
import { MonitorEditor } from './MonitorEditor';

export default function NewMonitorPage() {
  return <MonitorEditor />;
}
