/**
 * The secrets of one sign-in at an organization's identity provider. The browser that begins it holds a token, `svc_sso_…`,
 * and brings it back; state, which travels in URLs, is drawn beside it; nonce and code verifier (RFC 7636) derive from the
 * token, so that none of them is kept anywhere.
 */
import { createHmac } from 'node:crypto'
import { newOneTimeToken } from './one-time-token.ts'
import { randomBase62, tokenDigest } from './token.ts'

const STATE_LENGTH = 43

/** A sign-in that begins. */
export interface NewSsoFlow {
  readonly state: string
  readonly stateDigest: Buffer
  /** For the browser alone. */
  readonly token: string
  readonly tokenDigest: Buffer
}

/** Draws one. */
export const newSsoFlow = (): NewSsoFlow => {
  const state = randomBase62(STATE_LENGTH)
  const { token, digest } = newOneTimeToken('sso')
  return { state, stateDigest: tokenDigest(state), token, tokenDigest: digest }
}

/** What derives from a flow's token, with a key of ours: 43 characters of base64url each. */
export const ssoSecretsOf = (key: Buffer, token: string): { readonly nonce: string; readonly codeVerifier: string } => {
  const derive = (what: string): string => createHmac('sha256', key).update(`sso ${what}\n${token}`).digest('base64url')
  return { nonce: derive('nonce'), codeVerifier: derive('code verifier') }
}
