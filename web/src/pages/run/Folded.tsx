// Long text for whoever looks for a fault: a traceback or a log, folded until it is asked for.
import { Code } from '@mantine/core';
import { useState } from 'react';
import classes from './Run.module.css';

export function Folded({ title, text }: { title: string; text: string }) {
  const [opened, setOpened] = useState(false);
  return (
    <details className={classes.folded} onToggle={(event) => setOpened(event.currentTarget.open)}>
      <summary>{title}</summary>
      {opened && (
        <Code block className={classes.long} tabIndex={0} aria-label={title}>
          {text}
        </Code>
      )}
    </details>
  );
}
