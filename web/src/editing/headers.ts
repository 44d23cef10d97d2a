// Headers as rows: in a form their names may be empty or doubled for a while.

export type HeaderRow = { name: string; value: string };

/** What the server shows in the place of a secret it keeps. */
export const MASK = '********';
const SECRET = /auth|token|secret|key|passw|passphrase|cookie|session|credential|signature|jwt/i;

export function rowsOf(headers: Record<string, string>): HeaderRow[] {
  return Object.entries(headers).map(([name, value]) => ({ name, value }));
}

export function headersOf(rows: readonly HeaderRow[]): Record<string, string> {
  return Object.fromEntries(
    rows.filter(({ name }) => name.trim()).map(({ name, value }) => [name.trim(), value]),
  );
}

/** Whether the server will keep this value to itself. References to the environment are no secrets. */
export function isSecret({ name, value }: HeaderRow): boolean {
  return (
    value === MASK ||
    ((SECRET.test(name) || /^(bearer|basic) /i.test(value)) && !/^[^$]*\$\{[^{}]+\}[^$]*$/.test(value))
  );
}

export function nameProblem(rows: readonly HeaderRow[], index: number): string | undefined {
  const name = rows[index]?.name.trim().toLowerCase();
  if (!name) return rows[index]?.value ? 'Give the header a name' : undefined;
  const twin = rows.findIndex((row) => row.name.trim().toLowerCase() === name);
  return twin < index ? 'This header is already there' : undefined;
}
