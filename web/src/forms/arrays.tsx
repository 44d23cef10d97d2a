// Lists in generated forms: rows with buttons that say what they do.
import { Box, Button, Fieldset, Group, Stack, Text } from '@mantine/core';
import { type ArrayFieldItemTemplateProps, type ArrayFieldTemplateProps, buttonId } from '@rjsf/utils';
import { IconPlus } from '@tabler/icons-react';
import { RowButtons } from '../editing/RowButtons';

export function ArrayFieldTemplate(props: ArrayFieldTemplateProps) {
  const { canAdd, disabled, fieldPathId, items, onAddClick, required, rawErrors, schema, title } = props;
  const item = (schema.items as { title?: string } | undefined)?.title ?? 'item';
  return (
    <Fieldset id={fieldPathId.$id} legend={required ? `${title} *` : title} p="sm">
      <Stack gap="xs">
        {schema.description && (
          <Text size="xs" c="dimmed">
            {schema.description}
          </Text>
        )}
        {items}
        {rawErrors?.map((error) => (
          <Text key={error} size="xs" c="red">
            {error}
          </Text>
        ))}
        {canAdd && (
          <Group>
            <Button
              id={buttonId(fieldPathId, 'add')}
              variant="default"
              size="xs"
              leftSection={<IconPlus size={14} />}
              disabled={disabled}
              onClick={onAddClick}
            >
              Add {item.toLowerCase()}
            </Button>
          </Group>
        )}
      </Stack>
    </Fieldset>
  );
}

export function ArrayFieldItemTemplate({
  buttonsProps,
  children,
  hasToolbar,
  index,
  schema,
}: ArrayFieldItemTemplateProps) {
  const { hasMoveUp, hasMoveDown, hasRemove, onMoveUpItem, onMoveDownItem, onRemoveItem } = buttonsProps;
  const what = `${(schema.title ?? 'item').toLowerCase()} ${index + 1}`;
  const buttons = hasToolbar && (
    <RowButtons
      what={what}
      ordered={hasMoveUp || hasMoveDown}
      onUp={hasMoveUp ? onMoveUpItem : undefined}
      onDown={hasMoveDown ? onMoveDownItem : undefined}
      onRemove={hasRemove ? onRemoveItem : undefined}
    />
  );
  // An object has a frame of its own, with room for the buttons in its corner.
  if (schema.properties) {
    return (
      <Box pos="relative">
        {children}
        <Box pos="absolute" top={20} right={6}>
          {buttons}
        </Box>
      </Box>
    );
  }
  return (
    <Group gap="xs" align="flex-start" wrap="nowrap">
      <Box flex={1} miw={0}>
        {children}
      </Box>
      <Box pt={4}>{buttons}</Box>
    </Group>
  );
}
