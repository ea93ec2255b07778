import { newOneTimeToken } from '../../../lib/credentials/one-time-token.ts'
import { tokenDigest } from '../../../lib/credentials/token.ts'
import { matchTotp } from '../../../lib/credentials/totp.ts'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import { type AttemptLimit, countAttempt, forgetAttempts } from '../../store/login/attempts.ts'
import {
  type FirstStep,
  findFactor,
  insertMfaToken,
  secretPlace,
  spendRecoveryCode,
  spendStep,
} from '../../store/login/second-factors.ts'
import type { Sql } from '../../store/sql.ts'
import type { OpenCall } from '../call.ts'
import { visitMetadata } from './begin-session.ts'
import { tooManySignIns } from './check-password.ts'
import type { LoginDependencies } from './dependencies.ts'

/** A code that somebody gives, of either kind. */
export interface FactorProof {
  readonly totp_code?: string | undefined
  readonly recovery_code?: string | undefined
}

export type FactorKind = 'totp' | 'recovery_code'

/** Codes of an account, apart from its passwords: who knows neither cannot lock the one by guessing at the other. */
export const CODE_ATTEMPTS: AttemptLimit = { bucket: 'mfa', most: 10, windowSeconds: 900 }
const TOKEN_SECONDS = 300

export const invalidCode = (): DomainError =>
  new DomainError('invalid_mfa_code', 'The code is wrong, or was used already')

/** As people type them: in any case, in groups. */
const recoveryDigest = (code: string): Buffer => tokenDigest(code.toUpperCase().replaceAll(/[\s-]/g, ''))

const spend = async (
  sql: Sql,
  { sealer }: LoginDependencies,
  userId: string,
  { totp_code: code, recovery_code: recovery }: FactorProof,
): Promise<FactorKind | undefined> => {
  if (recovery !== undefined)
    return (await spendRecoveryCode(sql, userId, recoveryDigest(recovery))) ? 'recovery_code' : undefined
  const factor = await findFactor(sql, userId)
  if (code === undefined || factor?.enabledAt == null) return undefined
  const secret = sealer.open(secretPlace(userId, factor.version), factor.sealedSecret)
  const step = matchTotp(secret, code, factor.seconds)
  return step !== undefined && (await spendStep(sql, userId, factor.version, step)) ? 'totp' : undefined
}

/**
 * Takes a code in this transaction, in which what it proves has to happen too. A refusal is answered, not thrown: what was
 * counted has to be kept.
 */
export const passFactor = async (
  sql: Sql,
  deps: LoginDependencies,
  call: OpenCall,
  userId: string,
  proof: FactorProof,
): Promise<FactorKind | DomainError> => {
  // Before anything is judged; the row stays locked, so that codes of an account are judged one after another.
  const counted = await countAttempt(sql, CODE_ATTEMPTS, userId)
  if (!counted.allowed) return tooManySignIns(counted.retryAfterSeconds)
  const kind = await spend(sql, deps, userId, proof)
  if (kind !== undefined) {
    await forgetAttempts(sql, CODE_ATTEMPTS.bucket, userId)
    return kind
  }
  await insertAccountEvent(sql, {
    type: 'sign_in_failed',
    userId,
    clientIp: call.clientIp,
    userAgent: call.userAgent,
    metadata: visitMetadata(call, { factor: proof.recovery_code === undefined ? 'totp' : 'recovery_code' }),
  })
  return invalidCode()
}

/**
 * Asks whoever passed the first step for a second factor, where their account has one. `undefined`: it has none, begin the
 * session. A refusal is answered, not thrown, and carries a token for the second step where no code was given.
 */
export const askFactor = async (
  sql: Sql,
  deps: LoginDependencies,
  call: OpenCall,
  userId: string,
  method: FirstStep,
  proof: FactorProof = {},
): Promise<FactorKind | DomainError | undefined> => {
  if ((await findFactor(sql, userId))?.enabledAt == null) return undefined
  if (proof.totp_code !== undefined || proof.recovery_code !== undefined)
    return passFactor(sql, deps, call, userId, proof)
  const { token, digest } = newOneTimeToken('mfa')
  const expiresAt = await insertMfaToken(sql, { digest, userId, method, lifeSeconds: TOKEN_SECONDS })
  return new DomainError('mfa_required', 'The account has a second factor: send a code with the token', {
    details: { mfa_token: token, methods: ['totp', 'recovery_code'], expires_at: expiresAt.toISOString() },
  })
}
