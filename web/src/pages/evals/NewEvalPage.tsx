// A new eval.
import { EvalEditor } from './EvalEditor';

export default function NewEvalPage() {
  return <EvalEditor />;
}
