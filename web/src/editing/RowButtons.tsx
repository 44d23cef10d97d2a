// The buttons of a row in an ordered list: move it, remove it.
import { ActionIcon, Group } from '@mantine/core';
import { IconArrowDown, IconArrowUp, IconTrash } from '@tabler/icons-react';

type RowButtonsProps = {
  /** What the row is, for the buttons' names: "script message 2". */
  what: string;
  onUp?: () => void;
  onDown?: () => void;
  onRemove?: () => void;
  ordered?: boolean;
};

export function RowButtons({ what, onUp, onDown, onRemove, ordered = true }: RowButtonsProps) {
  return (
    <Group gap={2} wrap="nowrap">
      {ordered && (
        <>
          <RowButton label={`Move ${what} up`} onClick={onUp} icon={<IconArrowUp size={16} />} />
          <RowButton label={`Move ${what} down`} onClick={onDown} icon={<IconArrowDown size={16} />} />
        </>
      )}
      <RowButton label={`Remove ${what}`} onClick={onRemove} icon={<IconTrash size={16} />} />
    </Group>
  );
}

function RowButton({ label, icon, onClick }: { label: string; icon: React.ReactNode; onClick?: () => void }) {
  return (
    <ActionIcon
      variant={onClick ? 'subtle' : 'transparent'}
      color="gray"
      aria-label={label}
      title={label}
      disabled={!onClick}
      onClick={onClick}
    >
      {icon}
    </ActionIcon>
  );
}
