// Where a server needs a token: asks for it once; a cookie remembers.
import { Button, Container, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { queryClient } from '../api/queries';
import { logIn } from '../api/server';

export default function LogIn() {
  const [token, setToken] = useState('');
  const login = useMutation({ mutationFn: logIn, onSuccess: () => queryClient.invalidateQueries() });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (token) login.mutate(token);
  };
  return (
    <Container component="main" size="xs" py="xl">
      <Paper withBorder p="lg" component="form" onSubmit={submit}>
        <Stack>
          <Title order={1}>EvalStudio</Title>
          <Text size="sm">
            This server needs its token. It was printed when the server was first started, and is kept in
            data/server.token of the project.
          </Text>
          <PasswordInput
            label="Token"
            value={token}
            onChange={(event) => setToken(event.currentTarget.value)}
            error={login.error?.message}
            autoComplete="current-password"
            data-autofocus
          />
          <Button type="submit" loading={login.isPending} disabled={!token}>
            Log in
          </Button>
        </Stack>
      </Paper>
    </Container>
  );
}
