// A form made from a JSON Schema. It hands on only what differs from the schema's defaults.
import { Button } from '@mantine/core';
import { withTheme } from '@rjsf/core';
import { deepEquals, type ErrorSchema } from '@rjsf/utils';
import { useMemo, useRef, useState } from 'react';
import { withoutDefaults } from './defaults';
import { JsonBox } from './JsonField';
import { type FormShape, formShape, isShown, type JsonSchema } from './schema';
import { theme } from './theme';
import { validator } from './validator';

const Form = withTheme(theme);
const DEFAULTS = { arrayMinItems: { populate: 'requiredOnly' } } as const;

type Config = Record<string, unknown>;
type SchemaFormProps = {
  id: string;
  schema: JsonSchema;
  value: Config;
  errors?: ErrorSchema;
  onChange: (value: Config) => void;
};

export default function SchemaForm(props: SchemaFormProps) {
  const { id, schema, value, onChange } = props;
  const shape = useMemo(() => formShape(schema), [schema]);
  const fits = isShown(shape.schema, value);
  // Whoever mends the text goes on in it until they ask for the form.
  const [asText, setAsText] = useState(!fits);
  if (!fits && !asText) setAsText(true);
  if (!asText) return <Fields {...props} shape={shape} />;
  return (
    <>
      <JsonBox
        id={`${id}-text`}
        label="Settings"
        description="Written in another way than the form has fields for, so they are edited as text"
        value={value}
        onChange={(next) => onChange((next ?? {}) as Config)}
      />
      {fits && (
        <Button variant="default" size="xs" mt="xs" onClick={() => setAsText(false)}>
          Edit as a form
        </Button>
      )}
    </>
  );
}

function Fields({ id, shape, value, errors, onChange }: SchemaFormProps & { shape: FormShape }) {
  const [data, setData] = useState<Config>(value);
  const stored = (config: Config) => withoutDefaults(shape.schema, config) as Config;
  // The form keeps what is half entered; what comes from outside replaces it only where it says otherwise.
  const differs = !deepEquals(stored(data), stored(value));
  const formData = differs ? value : data;
  // A form fills in defaults when it is shown. That is no change of whoever looks at it.
  const touched = useRef(false);
  const touch = () => {
    touched.current = true;
  };
  return (
    <div onPointerDownCapture={touch} onKeyDownCapture={touch} onInputCapture={touch} onPasteCapture={touch}>
      <Form
        tagName="div"
        idPrefix={id}
        schema={shape.schema}
        uiSchema={{ ...shape.uiSchema, 'ui:submitButtonOptions': { norender: true } }}
        formData={formData}
        validator={validator}
        extraErrors={errors}
        experimental_defaultFormStateBehavior={DEFAULTS}
        showErrorList={false}
        onChange={({ formData }) => {
          const next = (formData ?? {}) as Config;
          setData(next);
          if (touched.current && !deepEquals(stored(next), stored(value))) onChange(stored(next));
        }}
      >
        {null}
      </Form>
    </div>
  );
}
