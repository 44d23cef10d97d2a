// The execution as a file.
import { Button, Menu } from '@mantine/core';
import { IconChevronDown, IconDownload } from '@tabler/icons-react';

const FORMATS = [
  { format: 'csv', name: 'CSV', hint: 'a row per run' },
  { format: 'json', name: 'JSON', hint: 'all numbers and runs' },
  { format: 'junit', name: 'JUnit', hint: 'for CI' },
  { format: 'html', name: 'HTML', hint: 'a page to send' },
] as const;

export function Export({ executionId }: { executionId: string }) {
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button
          variant="default"
          leftSection={<IconDownload size={16} aria-hidden />}
          rightSection={<IconChevronDown size={14} aria-hidden />}
        >
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {FORMATS.map(({ format, name, hint }) => (
          <Menu.Item
            key={format}
            component="a"
            href={`/api/executions/${executionId}/report?format=${format}`}
            download
          >
            {name}: {hint}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
