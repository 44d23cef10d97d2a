import { describe, expect, it } from 'vitest';
import { configRows, exampleConfig, typeName } from './configRows';

const SCHEMA = {
  type: 'object',
  required: ['rules', 'maxMs'],
  properties: {
    rules: { type: 'array', items: { $ref: '#/$defs/Rule' }, description: 'The rules' },
    maxMs: { type: 'number', exclusiveMinimum: 0 },
    match: { enum: ['subset', 'exact'], default: 'subset' },
    name: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null },
  },
  $defs: {
    Rule: {
      type: 'object',
      required: ['tool'],
      properties: { tool: { type: 'string' }, next: { $ref: '#/$defs/Rule' } },
    },
  },
};

describe('the docs of an evaluator', () => {
  it('list every setting, nested ones under their path, endless ones once', () => {
    const rows = configRows(SCHEMA);
    expect(rows.map(({ name }) => name)).toEqual([
      'rules',
      'rules[].tool',
      'rules[].next',
      'maxMs',
      'match',
      'name',
    ]);
    expect(rows.map(({ required }) => required)).toEqual([true, true, false, true, false, false]);
    expect(rows.map(({ preset }) => preset).filter(Boolean)).toEqual(['"subset"']);
  });

  it('name types as people do', () => {
    expect(typeName({ anyOf: [{ type: 'object' }, { type: 'boolean' }, { type: 'null' }] })).toBe(
      'object or boolean',
    );
    expect(typeName({ type: 'array', items: { type: 'string' } })).toBe('list of string');
    expect(typeName({})).toBe('any');
  });

  it('begin with an example of what is required', () => {
    expect(exampleConfig(SCHEMA)).toEqual({ rules: [{ tool: '…' }], maxMs: 1 });
    expect(exampleConfig({ type: 'object', properties: {} })).toEqual({});
  });
});
