// A config as it is kept: only what differs from the defaults of its type.
import { deepEquals, type RJSFSchema } from '@rjsf/utils';

type Fields = Record<string, unknown>;

/** What the form filled in by itself is taken out again; what is required stays. */
export function withoutDefaults(schema: RJSFSchema, value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = schema.items as RJSFSchema | undefined;
    // A row nothing was entered in yet is no item.
    return items
      ? value
          .filter((item) => item !== undefined && item !== null)
          .map((item) => withoutDefaults(items, item))
      : value;
  }
  if (!isFields(value) || !schema.properties) return choicePruned(schema, value);
  const required = new Set(schema.required ?? []);
  const fields: Fields = {};
  for (const [key, item] of Object.entries(value)) {
    const child = schema.properties[key] as RJSFSchema | undefined;
    const small = child ? withoutDefaults(child, item) : item;
    if (small === undefined) continue;
    if (required.has(key) || !isDefault(child, small)) fields[key] = small;
  }
  return fields;
}

function choicePruned(schema: RJSFSchema, value: unknown): unknown {
  const options = (schema.oneOf ?? schema.anyOf) as RJSFSchema[] | undefined;
  if (!options || !isFields(value)) return value;
  const chosen = options.find((option) => tagMatches(option, value));
  return chosen ? withoutDefaults(chosen, value) : value;
}

function tagMatches(option: RJSFSchema, value: Fields): boolean {
  const tags = Object.entries(option.properties ?? {}).filter(
    ([, child]) => (child as RJSFSchema).const !== undefined,
  );
  return tags.length > 0 && tags.every(([key, child]) => value[key] === (child as RJSFSchema).const);
}

function isDefault(schema: RJSFSchema | undefined, value: unknown): boolean {
  // What tells the options of a choice apart is part of the config, whatever its default.
  if (schema?.const !== undefined) return false;
  if (schema?.default !== undefined) return deepEquals(schema.default, value);
  // An empty list or object of a form means that nothing was entered.
  const formed = schema?.properties ?? schema?.items;
  return Boolean(formed) && typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
