// A new scenario.
import { ScenarioEditor } from './ScenarioEditor';

export default function NewScenarioPage() {
  return <ScenarioEditor />;
}
