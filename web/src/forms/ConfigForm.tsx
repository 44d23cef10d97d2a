// The form of a config, loaded when it is first needed; nothing where there is nothing to set.
import { Skeleton } from '@mantine/core';
import { queryOptions } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import type { Problem } from '../api/client';
import { errorTree } from '../editing/problems';
import { isEmptySchema, type JsonSchema } from './schema';

const load = () => import('./SchemaForm');
const SchemaForm = lazy(load);

/** For pages that wait for the form, so that nothing below it moves when it comes. */
export const formQuery = queryOptions({
  queryKey: ['schema-form'],
  staleTime: Number.POSITIVE_INFINITY,
  queryFn: async () => {
    await load();
    return true;
  },
});

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
