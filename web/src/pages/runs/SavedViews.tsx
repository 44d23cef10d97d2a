// Named addresses of this page. They are kept in this browser; sharing one is sharing its address.
import { ActionIcon, Button, Group, Menu, Popover, Stack, Text, TextInput } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { IconBookmark, IconTrash } from '@tabler/icons-react';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import type { RunsFilter } from './filter';

interface View {
  name: string;
  filter: RunsFilter;
}

const route = getRouteApi('/runs');

export function SavedViews() {
  const filter = route.useSearch();
  const navigate = useNavigate({ from: '/runs' });
  const [views, setViews] = useLocalStorage<View[]>({ key: 'evalstudio-runs-views', defaultValue: [] });
  const save = (name: string) => setViews([...views.filter((view) => view.name !== name), { name, filter }]);
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" leftSection={<IconBookmark size={16} aria-hidden />}>
            Saved views
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>Kept in this browser</Menu.Label>
          {views.length === 0 && <Menu.Item disabled>None yet</Menu.Item>}
          {views.map((view) => (
            <Group key={view.name} gap={4} wrap="nowrap">
              <Menu.Item onClick={() => void navigate({ search: view.filter })}>{view.name}</Menu.Item>
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={`Forget the view ${view.name}`}
                onClick={() => setViews(views.filter((one) => one !== view))}
              >
                <IconTrash size={14} aria-hidden />
              </ActionIcon>
            </Group>
          ))}
        </Menu.Dropdown>
      </Menu>
      <SaveView onSave={save} />
    </>
  );
}

function SaveView({ onSave }: { onSave: (name: string) => void }) {
  const [name, setName] = useState('');
  const [opened, setOpened] = useState(false);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!name.trim()) return;
    onSave(name.trim());
    setName('');
    setOpened(false);
  };
  return (
    <Popover opened={opened} onChange={setOpened} trapFocus position="bottom-end">
      <Popover.Target>
        <Button variant="default" onClick={() => setOpened(!opened)}>
          Save view
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs" component="form" onSubmit={submit}>
          <TextInput
            label="Name of the view"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            data-autofocus
          />
          <Text size="xs" c="dimmed">
            It keeps the filters of this page in this browser. To share it, share the address.
          </Text>
          <Button type="submit">Save</Button>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
