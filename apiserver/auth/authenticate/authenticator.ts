import type { OpenCall, Principal } from '../../commands/call.ts'

/** A credential whose form is right; whether it is valid is not known yet. */
export interface PresentedToken {
  readonly token: string
  /** Its SHA-256. */
  readonly digest: Buffer
}

/** What is known of a call before anybody knows who makes it: for the events that looking at its credential leaves. */
export type CallOrigin = Pick<OpenCall, 'requestId' | 'clientIp' | 'userAgent'>

/** Who it is, and what the answer tells them about their credential. */
export interface Authenticated {
  readonly principal: Principal
  /** Of sessions: the token that replaces the one in hand. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Knows one kind of credential. */
export interface Authenticator {
  /** Another service is asked: what is not known lately counts against its address before. */
  readonly asksOthers?: true
  /** Whether a text has the form of this kind: prefix, length, alphabet, checksum. No I/O. */
  accepts(token: string): boolean
  /**
   * Whose token it is, with their role in the organization where one is named; undefined when the token is not valid now.
   * One statement, on the database's clock: nothing about tokens is cached, so that a revocation holds at once.
   */
  find(
    presented: PresentedToken,
    organizationId: string | undefined,
    origin: CallOrigin,
  ): Promise<Authenticated | undefined>
}
