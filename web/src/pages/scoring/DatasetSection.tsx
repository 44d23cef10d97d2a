// Which records are scored: a file that is uploaded, or one of the project.
import { Alert, Button, FileButton, Group, SegmentedControl, Select, Text } from '@mantine/core';
import { IconFile, IconUpload } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { type DragEvent, useState } from 'react';
import { scoringSourcesQuery } from '../../api/scoring';
import { Section } from '../../editing/Section';
import { ErrorState } from '../../parts/ErrorState';
import { ago, compact } from '../../parts/numbers';
import classes from './Scoring.module.css';

/** What a request to the server may hold, with room for the plan. */
const LARGEST_UPLOAD = 9_000_000;
const KINDS = '.jsonl,.ndjson,.csv,.tsv';

export type Dataset = { path: string } | { upload: File };
type Props = { value: Dataset | null; onChange: (value: Dataset | null) => void };

export function DatasetSection({ value, onChange }: Props) {
  const [way, setWay] = useState<string>('upload');
  return (
    <Section
      title="Dataset"
      hint="Recorded responses: a JSON object a line, or a table with a header. One row is one record."
      action={
        <SegmentedControl
          aria-label="Where the dataset is"
          size="xs"
          data={[
            { value: 'upload', label: 'Upload' },
            { value: 'project', label: 'File of the project' },
          ]}
          value={way}
          onChange={(next) => {
            setWay(next);
            onChange(null);
          }}
        />
      }
    >
      {way === 'upload' ? (
        <Upload file={value && 'upload' in value ? value.upload : null} onChange={onChange} />
      ) : (
        <ProjectFile path={value && 'path' in value ? value.path : null} onChange={onChange} />
      )}
    </Section>
  );
}

function Upload({ file, onChange }: { file: File | null; onChange: Props['onChange'] }) {
  const [problem, setProblem] = useState<string>();
  const [over, setOver] = useState(false);
  const take = (next: File | null | undefined) => {
    if (!next) return;
    const wrong = problemOf(next);
    setProblem(wrong);
    onChange(wrong ? null : { upload: next });
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    take(event.dataTransfer.files[0]);
  };
  return (
    <>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the button inside does the same by keyboard */}
      <div
        className={classes.drop}
        data-over={over || undefined}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={onDrop}
      >
        <Group justify="center" gap="xs" mb="xs" mih={24}>
          {file ? (
            <>
              <IconFile size={18} aria-hidden />
              <Text fw={500} style={{ overflowWrap: 'anywhere' }}>
                {file.name}
              </Text>
              <Text c="dimmed" size="sm">
                {compact(file.size)}B
              </Text>
            </>
          ) : (
            <Text c="dimmed">Drop a JSONL, CSV or TSV file here, of up to 9 MB</Text>
          )}
        </Group>
        <FileButton accept={KINDS} onChange={take}>
          {(props) => (
            <Button {...props} variant="default" leftSection={<IconUpload size={16} />}>
              {file ? 'Choose another file' : 'Choose a file'}
            </Button>
          )}
        </FileButton>
      </div>
      {problem && (
        <Alert color="red" role="alert">
          {problem}
        </Alert>
      )}
    </>
  );
}

function problemOf(file: File): string | undefined {
  const ending = file.name.slice(file.name.lastIndexOf('.')).toLowerCase();
  if (!KINDS.split(',').includes(ending))
    return `${file.name} is no JSONL, CSV or TSV file. Parquet files are scored from the project folder.`;
  if (file.size > LARGEST_UPLOAD)
    return `${file.name} is larger than 9 MB. Put it into the project folder and choose it there.`;
  return file.size === 0 ? `${file.name} is empty.` : undefined;
}

function ProjectFile({ path, onChange }: { path: string | null; onChange: Props['onChange'] }) {
  const sources = useQuery(scoringSourcesQuery);
  if (sources.error) return <ErrorState error={sources.error} onRetry={() => void sources.refetch()} />;
  const data = (sources.data?.datasets ?? []).map((one) => ({
    value: one.path,
    label: `${one.path} (${compact(one.bytes)}B, ${ago(one.writtenAt)})`,
  }));
  return (
    <Select
      label="File"
      description=".jsonl, .csv, .tsv and .parquet files in the project folder, the newest first"
      placeholder={sources.isPending ? 'Looking for files' : data.length ? 'Choose a file' : 'There is none'}
      data={data}
      value={path}
      searchable
      nothingFoundMessage="Nothing matches"
      onChange={(next) => onChange(next ? { path: next } : null)}
    />
  );
}
