// A new persona.
import { PersonaEditor } from './PersonaEditor';

export default function NewPersonaPage() {
  return <PersonaEditor />;
}
