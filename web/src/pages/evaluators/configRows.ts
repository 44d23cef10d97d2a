// An evaluator's config schema as a table people can read, and an entry to begin with.
import type { JsonSchema } from '../../forms/schema';

export type ConfigRow = {
  name: string;
  type: string;
  preset: string;
  required: boolean;
  description: string;
};

type Defs = Record<string, JsonSchema>;

/** One row per setting, those of nested objects under their path. */
export function configRows(schema: JsonSchema): ConfigRow[] {
  return rowsIn(schema, defsOf(schema), '', []);
}

/** The smallest config that would be accepted, as far as its schema can tell. */
export function exampleConfig(schema: JsonSchema): Record<string, unknown> {
  return exampleObject(schema, defsOf(schema), []);
}

function rowsIn(schema: JsonSchema, defs: Defs, path: string, seen: string[]): ConfigRow[] {
  const required = new Set((schema.required ?? []) as string[]);
  return Object.entries((schema.properties ?? {}) as Defs).flatMap(([key, child]) => {
    const name = path + key;
    const row = {
      name,
      type: typeName(child, defs),
      preset: presetOf(child),
      required: required.has(key),
      description: String(child.description ?? ''),
    };
    const inner = innerOf(child, defs);
    if (!inner || seen.includes(inner.name)) return [row];
    const below = inner.list ? `${name}[].` : `${name}.`;
    return [row, ...rowsIn(inner.schema, defs, below, [...seen, inner.name])];
  });
}

/** The one object a setting is made of, or a list of. */
function innerOf(
  node: JsonSchema,
  defs: Defs,
): { name: string; schema: JsonSchema; list: boolean } | undefined {
  const items = node.type === 'array' ? (node.items as JsonSchema | undefined) : undefined;
  const target = items ?? node;
  const name = nameOf(target);
  const schema = name ? defs[name] : target;
  return schema?.properties ? { name: name ?? '', schema, list: items !== undefined } : undefined;
}

export function typeName(node: JsonSchema, defs: Defs = {}): string {
  const options = (node.anyOf ?? node.oneOf) as JsonSchema[] | undefined;
  if (options) {
    const names = options.filter(({ type }) => type !== 'null').map((one) => typeName(one, defs));
    return [...new Set(names)].join(' or ');
  }
  if (Array.isArray(node.enum)) return node.enum.map((one) => JSON.stringify(one)).join(' | ');
  if ('const' in node) return JSON.stringify(node.const);
  const name = nameOf(node);
  if (name) return defs[name] ? typeName(defs[name], defs) : 'object';
  if (node.type === 'array') return `list of ${typeName((node.items ?? {}) as JsonSchema, defs)}`;
  return typeof node.type === 'string' ? node.type : 'any';
}

function presetOf(node: JsonSchema): string {
  return node.default === undefined || node.default === null ? '' : JSON.stringify(node.default);
}

function exampleObject(schema: JsonSchema, defs: Defs, seen: string[]): Record<string, unknown> {
  const required = (schema.required ?? []) as string[];
  const children = (schema.properties ?? {}) as Defs;
  return Object.fromEntries(required.map((key) => [key, exampleValue(children[key] ?? {}, defs, seen)]));
}

function exampleValue(node: JsonSchema, defs: Defs, seen: string[]): unknown {
  const examples = node.examples as unknown[] | undefined;
  if (examples?.length) return examples[0];
  if (node.default !== undefined) return node.default;
  if ('const' in node) return node.const;
  if (Array.isArray(node.enum)) return node.enum[0];
  const options = (node.anyOf ?? node.oneOf) as JsonSchema[] | undefined;
  if (options?.[0]) return exampleValue(options[0], defs, seen);
  const name = nameOf(node);
  if (name) return seen.includes(name) ? {} : exampleValue(defs[name] ?? {}, defs, [...seen, name]);
  return exampleOfType(node, defs, seen);
}

function exampleOfType(node: JsonSchema, defs: Defs, seen: string[]): unknown {
  switch (node.type) {
    case 'string':
      return '…';
    case 'integer':
    case 'number':
      return Number(node.minimum ?? 0) > 0 ? node.minimum : Number(node.exclusiveMinimum ?? 0) + 1;
    case 'boolean':
      return true;
    case 'array':
      return [exampleValue((node.items ?? {}) as JsonSchema, defs, seen)];
    default:
      return exampleObject(node, defs, seen);
  }
}

function nameOf(node: JsonSchema): string | undefined {
  return typeof node.$ref === 'string' ? node.$ref.split('/').pop() : undefined;
}

function defsOf(schema: JsonSchema): Defs {
  return (schema.$defs ?? {}) as Defs;
}
