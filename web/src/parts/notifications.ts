// Short messages about what was just done.
import { notifications } from '@mantine/notifications';

export function notify(message: string): void {
  notifications.show({ message, color: 'teal', autoClose: 4_000 });
}

export function notifyProblem(error: Error): void {
  notifications.show({ title: 'That did not work', message: error.message, color: 'red', autoClose: 8_000 });
}
