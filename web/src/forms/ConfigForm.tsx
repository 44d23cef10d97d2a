// The form of a config, loaded when it is first needed; nothing where there is nothing to set.
import { Skeleton } from '@mantine/core';
import { lazy, Suspense } from 'react';
import type { Problem } from '../api/client';
import { errorTree } from '../editing/problems';
import { isEmptySchema, type JsonSchema } from './schema';

const SchemaForm = lazy(() => import('./SchemaForm'));

type ConfigFormProps = {
  id: string;
  schema: JsonSchema;
  value: Record<string, unknown>;
  /** What is wrong with it, each path beginning inside the config. */
  problems: Problem[];
  onChange: (value: Record<string, unknown>) => void;
};

export function ConfigForm({ schema, problems, ...rest }: ConfigFormProps) {
  if (isEmptySchema(schema)) return null;
  return (
    <Suspense fallback={<Skeleton h={56} />}>
      <SchemaForm schema={schema} errors={errorTree(problems)} {...rest} />
    </Suspense>
  );
}
