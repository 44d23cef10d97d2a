import { describe, expect, it } from 'vitest';
import { formShape, isEmptySchema, isShown, readable } from './schema';

const shapeOf = (field: object, key = 'field', defs = {}) => {
  const shape = formShape({ type: 'object', properties: { [key]: field }, $defs: defs });
  return { schema: (shape.schema.properties as Record<string, object>)[key], ui: shape.uiSchema[key] };
};

describe('readable', () => {
  it.each([
    ['maxMs', 'Max ms'],
    ['criterionName', 'Criterion name'],
    ['snake_case', 'Snake case'],
    ['sorensen-dice', 'Sorensen dice'],
    ['POST', 'POST'],
    ['', ''],
  ])('%s is %s', (name, words) => expect(readable(name)).toBe(words));
});

describe('a schema made fit for a form', () => {
  it('is empty without fields', () => {
    expect(isEmptySchema({ type: 'object', properties: {}, additionalProperties: false })).toBe(true);
    expect(isEmptySchema({ type: 'object', properties: { a: {} } })).toBe(false);
    expect(isEmptySchema({ type: 'object', additionalProperties: true })).toBe(false);
  });

  it('takes "or null" and a default of null out', () => {
    const { schema } = shapeOf({ anyOf: [{ type: 'integer', minimum: 0 }, { type: 'null' }], default: null });
    expect(schema).toEqual({ type: 'integer', minimum: 0, title: 'Field' });
  });

  it('keeps a default that is false, zero or empty', () => {
    for (const preset of [false, 0, ''])
      expect(shapeOf({ default: preset }).schema).toHaveProperty('default', preset);
  });

  it('makes titles that were made from names readable, and keeps those somebody wrote', () => {
    expect(shapeOf({ type: 'number', title: 'Maxms' }, 'maxMs').schema).toHaveProperty('title', 'Max ms');
    expect(shapeOf({ type: 'number', title: 'Longest wait' }, 'maxMs').schema).toHaveProperty(
      'title',
      'Longest wait',
    );
  });

  it('keeps a title of one word as it is written', () => {
    expect(shapeOf({ type: 'string', title: 'URL' }, 'url').schema).toHaveProperty('title', 'URL');
    expect(shapeOf({ type: 'string', title: 'Address' }, 'baseUrl').schema).toHaveProperty(
      'title',
      'Address',
    );
    expect(shapeOf({ type: 'string', title: 'Url' }, 'url').schema).toHaveProperty('title', 'Url');
  });

  it('tells shapes to choose from by their names', () => {
    const defs = {
      LengthRule: { type: 'object', title: 'LengthRule', properties: { type: { const: 'length' } } },
    };
    const { schema } = shapeOf({ oneOf: [{ $ref: '#/$defs/LengthRule' }] }, 'rule', defs);
    expect(schema).toMatchObject({ oneOf: [{ title: 'Length rule' }] });
  });

  it('writes references out, and edits endless ones as JSON', () => {
    const defs = {
      Rule: { type: 'object', title: 'Rule', properties: { inner: { $ref: '#/$defs/Rule' } } },
    };
    const { schema, ui } = shapeOf({ type: 'array', items: { $ref: '#/$defs/Rule' } }, 'rules', defs);
    expect(schema).toMatchObject({ items: { type: 'object', title: 'Rule' } });
    expect(ui).toMatchObject({ items: { inner: { 'ui:field': 'JsonField' } } });
  });

  it.each([
    ['any value', {}],
    ['a free object', { type: 'object', additionalProperties: true }],
    ['an object or a flag', { anyOf: [{ type: 'object' }, { type: 'boolean' }] }],
    ['a text or a number', { anyOf: [{ type: 'string' }, { type: 'number' }] }],
    ['several types', { type: ['string', 'number'] }],
    ['a list of anything', { type: 'array' }],
    ['a broken reference', { $ref: '#/$defs/Gone' }],
  ])('edits %s as JSON', (_, field) => expect(shapeOf(field).ui).toEqual({ 'ui:field': 'JsonField' }));

  it('lets a choice between objects be made, its tag unseen', () => {
    const option = (tag: string) => ({
      type: 'object',
      title: `${tag} rule`,
      properties: { type: { const: tag } },
    });
    const { schema, ui } = shapeOf({
      oneOf: [option('length'), option('regex')],
      discriminator: { propertyName: 'type', mapping: {} },
    });
    expect(schema).toMatchObject({ discriminator: { propertyName: 'type' } });
    expect(schema).toMatchObject({ oneOf: [{ properties: { type: { default: 'length' } } }, {}] });
    expect(ui).toMatchObject({ oneOf: [{ type: { 'ui:widget': 'hidden' } }, {}] });
  });

  it('gives long texts room', () => {
    expect(shapeOf({ type: 'string' }, 'systemPrompt').ui).toEqual({ 'ui:widget': 'textarea' });
    expect(shapeOf({ type: 'string' }, 'pattern').ui).toEqual({});
  });
});

describe('a value is shown by a form', () => {
  const length = {
    type: 'object',
    properties: { type: { const: 'length' }, min: { type: 'integer' } },
    additionalProperties: false,
  };
  const words = {
    type: 'object',
    properties: { type: { const: 'words' }, words: { type: 'array', items: { type: 'string' } } },
  };
  const rule = {
    type: 'object',
    properties: { scope: { type: 'string' }, config: { oneOf: [length, words] } },
  };
  const { schema } = formShape({
    type: 'object',
    properties: { rules: { type: 'array', items: rule }, extra: { type: 'object' } },
  });

  it.each([
    [{}],
    [{ rules: null }],
    [{ rules: [{ scope: 'last', config: { type: 'length', min: 3 } }] }],
    [{ rules: [{ config: { type: 'words', words: ['a'] } }, { config: {} }] }],
    [{ extra: { anything: [1] } }],
  ])('%j, which has a field for everything', (value) => expect(isShown(schema, value)).toBe(true));

  it.each([
    [{ rules: [{ type: 'length', min: 3 }] }],
    [{ rules: [{ config: { min: 3 } }] }],
    [{ rules: [{ config: { type: 'size', min: 3 } }] }],
    [{ rules: [{ config: { type: 'words', words: 'a' } }] }],
    [{ rules: { config: {} } }],
    [{ other: 1 }],
  ])('but not %j, which is spelled in another way', (value) => expect(isShown(schema, value)).toBe(false));
});
