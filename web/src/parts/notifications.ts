// Short messages about what was just done.
import { notifications } from '@mantine/notifications';

const CLOSE = { 'aria-label': 'Dismiss' };

export function notify(message: string): void {
  notifications.show({ message, color: 'teal', autoClose: 4_000, closeButtonProps: CLOSE });
}

export function notifyProblem(error: Error): void {
  notifications.show({
    title: 'That did not work',
    message: error.message,
    color: 'red',
    autoClose: 8_000,
    closeButtonProps: CLOSE,
  });
}
