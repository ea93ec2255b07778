/** Second factors of test accounts, and the codes of their apps. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { totpCode, totpStep } from '../lib/credentials/totp.ts'
import { fromAnywhere, TEST_PASSWORD, type TestSession } from './sign-in.ts'

/** The code that an app shows now, or so many steps later. */
export const codeOf = (secret: string, stepsLater = 0): string =>
  totpCode(secret, totpStep(Date.now() / 1000) + stepsLater)

const STEP_MS = 30_000
/** So long before the end of a step nobody begins with the code of the one before it. */
const BORDER_MS = 3_000

/** The code that an app showed a step ago, with time left to use it. */
export const codeBefore = async (secret: string): Promise<string> => {
  const left = STEP_MS - (Date.now() % STEP_MS)
  if (left < BORDER_MS) await sleep(left + 10)
  return codeOf(secret, -1)
}

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
  for (;;) {
    const step = totpStep(Date.now() / 1000)
    const answer = await session.client.call('confirmTotp', { body: { code: totpCode(secret, step - 1) } })
    // A step that ended meanwhile leaves the one before it behind.
    if (answer.status === 401 && totpStep(Date.now() / 1000) !== step) continue
    assert.equal(answer.status, 200, answer.text)
    return { secret, recoveryCodes: answer.body.recovery_codes }
  }
}
