// Says when the server cannot be reached. It goes away by itself once the stream of events is back.
import { Alert } from '@mantine/core';
import { IconPlugConnectedX } from '@tabler/icons-react';
import { useEffect, useState } from 'react';
import { useConnection } from '../api/events';

const GRACE_MS = 1_000;

export function ConnectionBanner() {
  const lost = useConnection() === 'lost';
  const [visible, setVisible] = useState(false);
  useEffect(() => {
    // A restart within a second is nobody's concern.
    const timer = setTimeout(() => setVisible(lost), lost ? GRACE_MS : 0);
    return () => clearTimeout(timer);
  }, [lost]);
  return (
    <div role="status" aria-live="polite">
      {visible && (
        <Alert
          variant="outline"
          color="orange"
          mb="md"
          icon={<IconPlugConnectedX aria-hidden />}
          title="The server does not answer"
        >
          What you see may be old. This page tries again by itself and catches up once the server is back.
          Runs that were under way go on when it starts again.
        </Alert>
      )}
    </div>
  );
}
