import type { Principal } from '../../commands/call.ts'

/** Knows one kind of credential. */
export interface Authenticator {
  /** Whether a text has the form of this kind: prefix, length, alphabet, checksum. No I/O. */
  accepts(token: string): boolean
  /**
   * Whose token has this digest, with their role in the organization where one is named; undefined when the token is not valid now.
   * One statement, on the database's clock: nothing about tokens is cached, so that a revocation holds at once.
   */
  find(digest: Buffer, organizationId: string | undefined): Promise<Principal | undefined>
}
