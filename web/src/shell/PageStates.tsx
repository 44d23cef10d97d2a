// A page that is loading, is not there, or failed.
import { Button } from '@mantine/core';
import { IconMapOff } from '@tabler/icons-react';
import { useRouter } from '@tanstack/react-router';
import { EmptyState } from '../parts/EmptyState';
import { ErrorState } from '../parts/ErrorState';
import { Loading } from '../parts/Loading';
import { LinkButton } from '../parts/links';
import { PageTitle } from '../parts/PageTitle';

export function PagePending() {
  return <Loading />;
}

export function PageMissing() {
  return (
    <>
      <PageTitle title="Not found" />
      <EmptyState
        icon={IconMapOff}
        title="There is no such page"
        actions={<LinkButton to="/">Go to Home</LinkButton>}
      >
        The address may be mistyped, or what it led to was deleted.
      </EmptyState>
    </>
  );
}

export function PageError({ error: thrown }: { error: unknown }) {
  const router = useRouter();
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  return (
    <ErrorState error={error} actions={<Button onClick={() => void router.invalidate()}>Try again</Button>} />
  );
}
