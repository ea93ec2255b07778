/** Second factors of test accounts, and the codes of their apps. */
import assert from 'node:assert/strict'
import { totpCode, totpStep } from '../lib/credentials/totp.ts'
import { fromAnywhere, TEST_PASSWORD, type TestSession } from './sign-in.ts'

/** The code that an app shows now, or so many steps later. */
export const codeOf = (secret: string, stepsLater = 0): string =>
  totpCode(secret, totpStep(Date.now() / 1000) + stepsLater)

/** A secret that waits for its first code. */
export const beginTotp = async ({ client }: TestSession): Promise<string> => {
  const answer = await client.call('beginTotp', { body: { password: TEST_PASSWORD }, headers: fromAnywhere() })
  assert.equal(answer.status, 200, answer.text)
  return answer.body.secret
}

/** Enrols an app; its first code is one of the past, so that the code of now may still be used. */
export const enrolTotp = async (
  session: TestSession,
): Promise<{ readonly secret: string; readonly recoveryCodes: readonly string[] }> => {
  const secret = await beginTotp(session)
  const answer = await session.client.call('confirmTotp', { body: { code: codeOf(secret, -1) } })
  assert.equal(answer.status, 200, answer.text)
  return { secret, recoveryCodes: answer.body.recovery_codes }
}
