// A page that is loading, is not there, or failed.
import { Button } from '@mantine/core';
import { IconMapOff } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { useEffect } from 'react';
import { ApiError } from '../api/client';
import { statusQuery } from '../api/server';
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

const ASK_MS = 1_000;

/** The code of this page could not be read. Once the server answers again everything is loaded afresh. */
export function PageUnreachable() {
  const status = useQuery({ ...statusQuery, refetchInterval: ASK_MS, staleTime: 0, retry: false });
  const back = status.isSuccess && status.isFetchedAfterMount && !status.isFetching;
  useEffect(() => {
    if (back) window.location.reload();
  }, [back]);
  return (
    <>
      <PageTitle title="Waiting for the server" />
      <ErrorState error={new ApiError(0, 'unreachable', 'This page was not loaded yet.')} />
    </>
  );
}
