import type { RJSFSchema } from '@rjsf/utils';
import { describe, expect, it } from 'vitest';
import { withoutDefaults } from './defaults';
import { validator } from './validator';

const SCHEMA: RJSFSchema = {
  type: 'object',
  required: ['words', 'style'],
  properties: {
    words: { type: 'array', items: { type: 'string' } },
    style: { type: 'string', default: 'loose' },
    threshold: { type: 'number', default: 0.5 },
    names: { type: 'array', items: { type: 'string' } },
    tone: { type: 'object', properties: { mood: { type: 'string', default: 'calm' } } },
    free: {},
  },
};

describe('a config as it is kept', () => {
  it('leaves out defaults, but not what is required', () => {
    const config = { words: [], style: 'loose', threshold: 0.5, names: [], tone: { mood: 'calm' } };
    expect(withoutDefaults(SCHEMA, config)).toEqual({ words: [], style: 'loose' });
  });

  it('keeps what differs, deep inside too', () => {
    const config = { words: ['a'], style: 'exact', threshold: 0, tone: { mood: 'lively' } };
    expect(withoutDefaults(SCHEMA, config)).toEqual(config);
  });

  it('leaves out rows nothing was entered in', () => {
    expect(withoutDefaults(SCHEMA, { words: ['a', undefined, null], style: 'x' })).toEqual({
      words: ['a'],
      style: 'x',
    });
  });

  it('does not touch what is edited as JSON, nor keys it does not know', () => {
    const config = { words: ['a'], style: 'x', free: { empty: [], nothing: null }, more: 1 };
    expect(withoutDefaults(SCHEMA, config)).toEqual(config);
  });

  it('keeps what tells the options of a choice apart, also where it has a default', () => {
    const option: RJSFSchema = { type: 'object', properties: { kind: { const: 'a', default: 'a' } } };
    expect(withoutDefaults({ oneOf: [option] }, { kind: 'a' })).toEqual({ kind: 'a' });
  });

  it('prunes the chosen option of a choice', () => {
    const option: RJSFSchema = {
      type: 'object',
      required: ['type'],
      properties: {
        type: { const: 'length', default: 'length' },
        strict: { type: 'boolean', default: false },
      },
    };
    expect(withoutDefaults({ oneOf: [option] }, { type: 'length', strict: false })).toEqual({
      type: 'length',
    });
    expect(withoutDefaults({ oneOf: [option] }, { type: 'other', strict: false })).toEqual({
      type: 'other',
      strict: false,
    });
  });
});

describe('the validator', () => {
  const root: RJSFSchema = { $defs: { Name: { type: 'string', minLength: 2 } } };

  it('follows references into the whole schema', () => {
    expect(validator.isValid({ $ref: '#/$defs/Name' }, 'ab', root)).toBe(true);
    expect(validator.isValid({ $ref: '#/$defs/Name' }, 'a', root)).toBe(false);
  });

  it('leaves judging configs to the server', () => {
    expect(validator.validateFormData({}, { required: ['x'] })).toEqual({ errors: [], errorSchema: {} });
  });
});
