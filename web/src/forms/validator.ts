// Checks data against schemas by interpreting them: the page's content policy forbids compiled code.
// The form asks it only which option of a choice fits; whether a config is right is the server's word.
import { type OutputUnit, type Schema, Validator } from '@cfworker/json-schema';
import type { RJSFSchema, ValidatorType } from '@rjsf/utils';

export const validator: ValidatorType = {
  validateFormData: () => ({ errors: [], errorSchema: {} }),
  isValid: (schema, formData, rootSchema) => errorsIn(schema, formData, rootSchema).length === 0,
  rawValidation: <Result>(schema: RJSFSchema, formData?: unknown) => ({
    errors: errorsIn(schema, formData, schema) as Result[],
  }),
};

function errorsIn(schema: RJSFSchema, value: unknown, root: RJSFSchema): OutputUnit[] {
  const whole = { ...schema, $defs: root.$defs ?? {} } as Schema;
  return new Validator(whole, '2020-12').validate(value ?? null).errors;
}

export default validator;
