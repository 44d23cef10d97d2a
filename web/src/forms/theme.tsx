// How generated forms look where Mantine's own theme for them is too loud or leaves descriptions out.
import { Checkbox, Fieldset, Select, Stack, Text } from '@mantine/core';
import type { ThemeProps } from '@rjsf/core';
import { Theme } from '@rjsf/mantine';
import {
  type DescriptionFieldProps,
  enumOptionSelectedValue,
  enumOptionValueDecoder,
  enumOptionValueEncoder,
  type FieldTemplateProps,
  getOptionValueFormat,
  type ObjectFieldTemplateProps,
  type TitleFieldProps,
  type WidgetProps,
} from '@rjsf/utils';
import { ArrayFieldItemTemplate, ArrayFieldTemplate } from './arrays';
import { JsonField } from './JsonField';

function CheckboxWidget({ id, value, label, schema, disabled, readonly, rawErrors, onChange }: WidgetProps) {
  return (
    <Checkbox
      id={id}
      label={label}
      description={schema.description}
      checked={value === true}
      disabled={disabled || readonly}
      error={rawErrors?.join(', ')}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}

function SelectWidget(props: WidgetProps) {
  const { id, value, label, hideLabel, schema, required, disabled, readonly, rawErrors, options, onChange } =
    props;
  const format = getOptionValueFormat(options);
  const choices = options.enumOptions ?? [];
  const chosen = enumOptionSelectedValue(value, choices, false, format, null);
  return (
    <Select
      id={id}
      label={hideLabel ? undefined : label}
      aria-label={hideLabel ? label || 'Kind' : undefined}
      description={hideLabel ? undefined : schema.description}
      data={choices.map((option, index) => ({
        value: enumOptionValueEncoder(option.value, index, format),
        // A choice is written into the config as it stands, so it is shown as it stands.
        label: option.label,
      }))}
      value={typeof chosen === 'string' ? chosen : null}
      onChange={(next) => onChange(enumOptionValueDecoder(next ?? '', choices, format, options.emptyValue))}
      required={required}
      disabled={disabled || readonly}
      allowDeselect={!required && schema.default === undefined && !props.multiple}
      error={rawErrors?.join(', ')}
    />
  );
}

function TitleField({ id, title }: TitleFieldProps) {
  return (
    <Text id={id} fw={500} size="sm">
      {title}
    </Text>
  );
}

function DescriptionField({ id, description }: DescriptionFieldProps) {
  return description ? (
    <Text id={id} size="xs" c="dimmed">
      {description}
    </Text>
  ) : null;
}

function ObjectFieldTemplate({ fieldPathId, title, description, properties }: ObjectFieldTemplateProps) {
  const fields = (
    <Stack gap="sm">
      {properties
        .filter((one) => !one.hidden)
        .map((one) => (
          <div key={one.name}>{one.content}</div>
        ))}
    </Stack>
  );
  if (!title) return <div id={fieldPathId.$id}>{fields}</div>;
  // The buttons of a row are in its corner.
  const inList = /_\d+$/.test(fieldPathId.$id);
  return (
    <Fieldset id={fieldPathId.$id} legend={title} p="sm">
      {(description || inList) && (
        <Text size="xs" c="dimmed" mb="xs" pr={inList ? 90 : 0} mih={18}>
          {description}
        </Text>
      )}
      {fields}
    </Fieldset>
  );
}

function FieldTemplate({ hidden, children, errors, help }: FieldTemplateProps) {
  return (
    <div hidden={hidden}>
      {children}
      {errors}
      {help}
    </div>
  );
}

export const theme: ThemeProps = {
  ...Theme,
  fields: { ...Theme.fields, JsonField },
  widgets: { ...Theme.widgets, CheckboxWidget, SelectWidget },
  templates: {
    ...Theme.templates,
    ArrayFieldTemplate,
    ArrayFieldItemTemplate,
    FieldTemplate,
    TitleFieldTemplate: TitleField,
    DescriptionFieldTemplate: DescriptionField,
    ObjectFieldTemplate,
  },
};
