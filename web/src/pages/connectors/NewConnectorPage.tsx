// A new connector.
import { ConnectorEditor } from './ConnectorEditor';

export default function NewConnectorPage() {
  return <ConnectorEditor />;
}
