// A word of the address: what a list is narrowed to can be shared, and is there again after going back.
import { useRouter } from '@tanstack/react-router';
import { useState } from 'react';

export function useSearchParam(name: string): [string, (value: string) => void] {
  const router = useRouter();
  const [value, setValue] = useState(() => new URLSearchParams(window.location.search).get(name) ?? '');
  const change = (next: string) => {
    setValue(next);
    const address = new URL(window.location.href);
    if (next) address.searchParams.set(name, next);
    else address.searchParams.delete(name);
    router.history.replace(address.pathname + address.search);
  };
  return [value, change];
}
