// Mantine's links and buttons that go to a page, with checked addresses.
import { Anchor, type AnchorProps, Button, type ButtonProps } from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import { type AnchorHTMLAttributes, forwardRef } from 'react';

type Html<P> = P & Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof P>;

export const PageLink = createLink(
  forwardRef<HTMLAnchorElement, Html<AnchorProps>>((props, ref) => <Anchor ref={ref} {...props} />),
);

export const LinkButton = createLink(
  forwardRef<HTMLAnchorElement, Html<ButtonProps>>((props, ref) => (
    <Button ref={ref} component="a" {...props} />
  )),
);
