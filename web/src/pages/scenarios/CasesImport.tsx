// Cases pasted as text or read from a file; the server reads them as it reads files of the project.
import { Alert, Button, FileButton, Group, Modal, Stack, Textarea } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconUpload } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { ApiError } from '../../api/client';
import { readCases } from '../../api/definitions';
import { notify } from '../../parts/notifications';
import { plural } from '../../parts/numbers';
import type { Case } from './draft';

const EXAMPLE = `name,city,groundTruth
in town,Bern,delivered today
far away,Geneva,delivered tomorrow`;

export function CasesImport({ onRead }: { onRead: (cases: Case[]) => void }) {
  const [opened, { open, close }] = useDisclosure();
  const [text, setText] = useState('');
  const read = useMutation({
    mutationFn: (source: { name: string; text: string }) => readCases(source.name, source.text),
    onSuccess: (cases) => {
      onRead(cases);
      notify(`${plural(cases.length, 'case')} added`);
      setText('');
      close();
    },
  });
  const upload = async (file: File | null) => {
    if (file) read.mutate({ name: file.name, text: await file.text() });
  };
  return (
    <>
      <Button
        variant="default"
        size="xs"
        w="max-content"
        leftSection={<IconUpload size={14} />}
        onClick={() => {
          read.reset();
          open();
        }}
      >
        Paste or upload
      </Button>
      <Modal opened={opened} onClose={close} title="Cases from CSV or JSONL" size="lg">
        <Stack gap="sm">
          <Textarea
            label="Text"
            description="CSV with a header, or one JSON object a line. Columns name, groundTruth and context belong to the case; every other one is a value."
            placeholder={EXAMPLE}
            autosize
            minRows={6}
            maxRows={16}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            data-autofocus
          />
          {read.error && (
            <Alert color="red" role="alert" title="These cases cannot be read">
              {problemText(read.error)}
            </Alert>
          )}
          <Group justify="flex-end" gap="sm">
            <FileButton accept=".csv,.jsonl,.ndjson" onChange={(file) => void upload(file)}>
              {(props) => (
                <Button {...props} variant="default">
                  Choose a file
                </Button>
              )}
            </FileButton>
            <Button
              disabled={text.trim() === ''}
              loading={read.isPending}
              onClick={() => read.mutate({ name: nameFor(text), text })}
            >
              Add cases
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}

/** Lines of JSON begin with a brace, a header of CSV does not. */
function nameFor(text: string): string {
  return text.trimStart().startsWith('{') ? 'pasted.jsonl' : 'pasted.csv';
}

function problemText(error: Error): string {
  const details = error instanceof ApiError ? error.details.map((one) => one.message) : [];
  return details.length > 0 ? details.join('; ') : error.message;
}
