// Config schemas made fit for forms: references resolved, "or null" taken out, readable titles.
// What no form can show well (free objects, values of any type) is edited as JSON.
import type { RJSFSchema, UiSchema } from '@rjsf/utils';

export type JsonSchema = Record<string, unknown>;
export type FormShape = { schema: RJSFSchema; uiSchema: UiSchema };

type Defs = Record<string, JsonSchema>;
type Place = { key: string; defs: Defs; seen: string[] };

const LONG_TEXT = /(prompt|criteria|template|instructions|comment)$/i;
const REFERENCE = '#/$defs/';

/** Whether there is nothing to fill in. */
export function isEmptySchema(schema: JsonSchema): boolean {
  return isObject(schema) && Object.keys(properties(schema)).length === 0 && !schema.additionalProperties;
}

/** The schema as the form wants it, and how each field is shown. */
export function formShape(schema: JsonSchema): FormShape {
  const defs = (schema.$defs ?? {}) as Defs;
  const shaped = shapeOf(schema, { key: '', defs, seen: [] });
  const { title: _title, description: _description, $defs: _defs, ...rest } = shaped.schema;
  return { schema: rest as RJSFSchema, uiSchema: shaped.uiSchema };
}

/** "maxMs" as people write it: "Max ms". */
export function readable(name: string): string {
  if (name === name.toUpperCase()) return name;
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/[_-]+/g, ' ')
    .trim()
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Whether a form of this shape has a field for everything in a value. A file may spell settings in other ways
 * that the server accepts; a form that left them out, or chose an option by itself, would show what is not so. */
export function isShown(schema: RJSFSchema, value: unknown): boolean {
  if (value === null || value === undefined) return true;
  const options = (schema.oneOf ?? schema.anyOf) as RJSFSchema[] | undefined;
  if (schema.type === 'array') return Array.isArray(value) && everyShown(schema.items as RJSFSchema, value);
  if (options) return isFields(value) && (isBlank(value) || options.some((one) => isOption(one, value)));
  if (!schema.properties) return true;
  return isFields(value) && Object.entries(value).every(([key, item]) => hasField(schema, key, item));
}

function everyShown(items: RJSFSchema | undefined, values: unknown[]): boolean {
  return !items || values.every((one) => isShown(items, one));
}

function hasField(schema: RJSFSchema, key: string, value: unknown): boolean {
  const child = schema.properties?.[key] as RJSFSchema | undefined;
  return child ? isShown(child, value) : Boolean(schema.additionalProperties);
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isBlank(value: object): boolean {
  return Object.keys(value).length === 0;
}

function isOption(option: RJSFSchema, value: Record<string, unknown>): boolean {
  const tags = Object.entries(properties(option as JsonSchema)).filter(([, child]) => 'const' in child);
  return tags.every(([key, child]) => value[key] === child.const) && isShown(option, value);
}

function shapeOf(schema: JsonSchema, place: Place): FormShape {
  const { node, seen, endless } = resolved(withoutNull(schema), place);
  const inside = { ...place, seen };
  const titled: JsonSchema = { ...node, title: titleOf(node, place.key) };
  if (endless || isFree(titled)) return asJson(titled);
  if (isObject(titled)) return asObject(titled, inside);
  if (titled.type === 'array') return asArray(titled, inside);
  const kind = Array.isArray(titled.oneOf) ? 'oneOf' : 'anyOf';
  if (Array.isArray(titled[kind])) return asChoice(titled, kind, inside);
  return { schema: titled as RJSFSchema, uiSchema: scalarUi(titled, place.key) };
}

function resolved(node: JsonSchema, place: Place): { node: JsonSchema; seen: string[]; endless: boolean } {
  const reference = node.$ref;
  if (typeof reference !== 'string') return { node, seen: place.seen, endless: false };
  const name = reference.startsWith(REFERENCE) ? reference.slice(REFERENCE.length) : '';
  const target = place.defs[name];
  const { $ref: _ref, ...own } = node;
  if (!target || place.seen.includes(name)) return { node: own, seen: place.seen, endless: true };
  // A shape called like its definition has no title of its own; as one of several it is told by that name.
  const { title, ...shape } = withoutNull(target);
  const called = title === name ? (place.key ? undefined : readable(name)) : title;
  const titled = called === undefined ? shape : { ...shape, title: called };
  return resolved({ ...titled, ...own }, { ...place, seen: [...place.seen, name] });
}

/** An optional value is left out of a config rather than written as null. */
function withoutNull(node: JsonSchema): JsonSchema {
  const { default: preset, ...rest } = node;
  const schema: JsonSchema = preset === null || preset === undefined ? rest : node;
  const kind = Array.isArray(schema.oneOf) ? 'oneOf' : 'anyOf';
  const all = schema[kind];
  if (!Array.isArray(all)) return schema;
  const options = (all as JsonSchema[]).filter((option) => option.type !== 'null');
  if (kind === 'oneOf' && options.length === all.length) return schema;
  if (options.length !== 1) return { ...schema, [kind]: options };
  const { [kind]: _options, ...own } = schema;
  return { ...options[0], ...own };
}

function asObject(node: JsonSchema, place: Place): FormShape {
  const shapes = Object.entries(properties(node)).map(
    ([key, child]) => [key, shapeOf(child, { ...place, key })] as const,
  );
  const schema = {
    ...node,
    properties: Object.fromEntries(shapes.map(([key, shape]) => [key, shape.schema])),
  };
  return {
    schema: schema as RJSFSchema,
    uiSchema: Object.fromEntries(shapes.map(([key, shape]) => [key, shape.uiSchema])),
  };
}

function asArray(node: JsonSchema, place: Place): FormShape {
  if (!node.items || Array.isArray(node.items)) return asJson(node);
  const item = shapeOf(node.items as JsonSchema, { ...place, key: singular(place.key) });
  const uiSchema = { items: { ...item.uiSchema, ...itemUi(item.schema as JsonSchema) } };
  return { schema: { ...node, items: item.schema } as RJSFSchema, uiSchema };
}

/** A row of one input needs no label above it, but a name for those who do not see the list. */
function itemUi(item: JsonSchema): UiSchema {
  const simple = ['string', 'number', 'integer'].includes(String(item.type));
  return simple ? { 'ui:label': false, 'ui:options': { 'aria-label': item.title as string } } : {};
}

function asChoice(node: JsonSchema, kind: 'oneOf' | 'anyOf', place: Place): FormShape {
  const shapes = (node[kind] as JsonSchema[]).map((option) => shapeOf(option, { ...place, key: '' }));
  if (!shapes.every((shape) => isObject(shape.schema as JsonSchema))) return asJson(node);
  // The mapping points at definitions that are written out now.
  const { discriminator, ...rest } = node as JsonSchema & { discriminator?: { propertyName?: string } };
  const schema: JsonSchema = { ...rest, [kind]: shapes.map((shape) => hideTag(shape.schema)) };
  if (discriminator?.propertyName) schema.discriminator = { propertyName: discriminator.propertyName };
  const uiSchema = { [kind]: shapes.map((shape) => ({ ...shape.uiSchema, ...tagUi(shape.schema) })) };
  return { schema: schema as RJSFSchema, uiSchema };
}

/** The choice itself says which option it is: its tag needs no field. */
function tagUi(schema: RJSFSchema): UiSchema {
  const tags = Object.entries(properties(schema as JsonSchema)).filter(([, child]) => 'const' in child);
  return Object.fromEntries(tags.map(([key]) => [key, { 'ui:widget': 'hidden' }]));
}

function hideTag(schema: RJSFSchema): RJSFSchema {
  const children = Object.entries(properties(schema as JsonSchema)).map(([key, child]) => [
    key,
    'const' in child ? { ...child, default: child.const } : child,
  ]);
  const tag = children.map(([, child]) => (child as JsonSchema).const).find((one) => one !== undefined);
  const title = schema.title || (tag === undefined ? undefined : readable(String(tag)));
  return { ...schema, title, properties: Object.fromEntries(children) };
}

function asJson(node: JsonSchema): FormShape {
  const { title, description, default: preset } = node;
  const schema: JsonSchema = { title, description };
  if (preset !== undefined) schema.default = preset;
  return { schema: schema as RJSFSchema, uiSchema: { 'ui:field': 'JsonField' } };
}

function scalarUi(node: JsonSchema, key: string): UiSchema {
  if (node.type === 'string' && !node.enum && LONG_TEXT.test(key)) return { 'ui:widget': 'textarea' };
  if (node.type === 'boolean') return { 'ui:widget': 'checkbox' };
  return node.default === undefined || node.enum ? {} : { 'ui:placeholder': String(node.default) };
}

function isFree(node: JsonSchema): boolean {
  if (node.enum || 'const' in node || node.oneOf) return false;
  if (node.anyOf) return false;
  if (Array.isArray(node.type)) return true;
  if (isObject(node))
    return Object.keys(properties(node)).length === 0 && node.additionalProperties !== false;
  return node.type === undefined;
}

function isObject(node: JsonSchema): boolean {
  return node.type === 'object' || (node.type === undefined && node.properties !== undefined);
}

function properties(node: JsonSchema): Record<string, JsonSchema> {
  return (node.properties ?? {}) as Record<string, JsonSchema>;
}

/** A title somebody wrote stays as it is; one made from the name is made readable. */
function titleOf(node: JsonSchema, key: string): string {
  const title = typeof node.title === 'string' ? node.title : '';
  return title && title !== madeFrom(key) ? title : readable(key);
}

/** The title that a schema generator makes of a name: "maxMs" becomes "Maxms", "max_ms" "Max Ms". */
function madeFrom(name: string): string {
  return name
    .replace(/_/g, ' ')
    .replace(/[a-z]+/gi, (word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase());
}

function singular(key: string): string {
  return key.endsWith('ies') ? `${key.slice(0, -3)}y` : key.replace(/([^s])s$/, '$1');
}
