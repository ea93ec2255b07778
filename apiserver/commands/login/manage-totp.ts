import { randomBytes } from 'node:crypto'
import { tokenDigest } from '../../../lib/credentials/token.ts'
import { base32, matchTotp, newTotpSecret, otpauthUri } from '../../../lib/credentials/totp.ts'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { AccountEventType } from '../../../lib/model/audit.ts'
import type { EnrolledTotp, MfaState, PendingTotp, RecoveryCodes } from '../../contract/login/mfa.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import { countAttempt, forgetAttempts } from '../../store/login/attempts.ts'
import {
  countRecoveryCodes,
  enableFactor,
  findFactor,
  putPendingFactor,
  removeFactor,
  replaceRecoveryCodes,
  secretPlace,
} from '../../store/login/second-factors.ts'
import { endOtherSessions } from '../../store/login/sessions.ts'
import type { Sql } from '../../store/sql.ts'
import { lockUser } from '../../store/users.ts'
import type { Call, Reply } from '../call.ts'
import { visitMetadata } from './begin-session.ts'
import { provePassword, tooManySignIns } from './check-password.ts'
import type { LoginDependencies } from './dependencies.ts'
import { sessionUser } from './end-sessions.ts'
import { steppingUp } from './prove-again.ts'
import { CODE_ATTEMPTS, type FactorProof, invalidCode, passFactor } from './second-factor.ts'

/** What apps show beside a code. */
const ISSUER = 'svc'
const PENDING_SECONDS = 600
const RECOVERY_CODES = 10
/** 24 characters in base32: 120 bits, which need no slow hash. */
const RECOVERY_BYTES = 15

const noteEvent = (sql: Sql, call: Call, type: AccountEventType, userId: string): Promise<void> =>
  insertAccountEvent(sql, {
    type,
    userId,
    clientIp: call.clientIp,
    userAgent: call.userAgent,
    metadata: visitMetadata(call, { session_id: call.principal.credentialId }),
  })

const newRecoveryCodes = async (sql: Sql, userId: string): Promise<string[]> => {
  const codes = Array.from({ length: RECOVERY_CODES }, () => base32(randomBytes(RECOVERY_BYTES)))
  await replaceRecoveryCodes(sql, userId, codes.map(tokenDigest))
  return codes
}

/** Which second factors the caller has. */
export const readMfa = async ({ database }: LoginDependencies, call: Call): Promise<Reply<200, MfaState>> => {
  const userId = sessionUser(call)
  const [factor, codes] = await Promise.all([findFactor(database, userId), countRecoveryCodes(database, userId)])
  const enabledAt = factor?.enabledAt ?? null
  const totp = { enabled: enabledAt !== null, enrolled_at: enabledAt?.toISOString() ?? null }
  return { status: 200, body: { totp, recovery_codes_remaining: codes } }
}

/**
 * Draws a secret for an app; it is asked for once its first code came.
 * @throws DomainError `invalid_credentials`, `mfa_already_enabled`, `sign_in_rate_limited`, `login_busy`
 */
export const beginTotp = async (
  deps: LoginDependencies,
  call: Call,
  password: string,
): Promise<Reply<200, PendingTotp>> => {
  const { userId, email, name } = await provePassword(deps, call, password)
  const secret = newTotpSecret()
  const until = await deps.database.transaction(async sql => {
    await lockUser(sql, userId)
    const before = await findFactor(sql, userId)
    if (before?.enabledAt != null)
      throw new DomainError('mfa_already_enabled', 'The account has an app already: remove that one first')
    const version = (before?.version ?? 0) + 1
    const sealed = deps.sealer.seal(secretPlace(userId, version), secret)
    return putPendingFactor(sql, userId, sealed, version, PENDING_SECONDS)
  })
  const uri = otpauthUri(ISSUER, email ?? name, secret)
  // Loaded by whoever needs it: it takes a twentieth of a start.
  const { toString } = await import('qrcode')
  const svg = await toString(uri, { type: 'svg', errorCorrectionLevel: 'M' })
  return { status: 200, body: { secret, otpauth_uri: uri, qr_svg: svg, expires_at: until.toISOString() } }
}

/**
 * Takes the first code of an app: from now on sign-ins need one. The code is spent with it.
 * @throws DomainError `invalid_mfa_code`, `sign_in_rate_limited`
 */
export const confirmTotp = async (
  deps: LoginDependencies,
  call: Call,
  code: string,
): Promise<Reply<200, EnrolledTotp>> => {
  const userId = sessionUser(call)
  const codes = await steppingUp(deps, call, async sql => {
    const counted = await countAttempt(sql, CODE_ATTEMPTS, userId)
    if (!counted.allowed) return tooManySignIns(counted.retryAfterSeconds)
    const factor = await findFactor(sql, userId)
    if (factor?.pending !== true) return invalidCode()
    const secret = deps.sealer.open(secretPlace(userId, factor.version), factor.sealedSecret)
    const step = matchTotp(secret, code, factor.seconds)
    if (step === undefined || !(await enableFactor(sql, userId, factor.version, step))) return invalidCode()
    await forgetAttempts(sql, CODE_ATTEMPTS.bucket, userId)
    const made = await newRecoveryCodes(sql, userId)
    await noteEvent(sql, call, 'mfa_enrolled', userId)
    return made
  })
  return { status: 200, body: { enabled: true, recovery_codes: codes } }
}

/** Does something that needs the password and a code, in the transaction in which the code is spent. */
const withBoth = async <Result>(
  deps: LoginDependencies,
  call: Call,
  { password, ...proof }: FactorProof & { readonly password: string },
  act: (sql: Sql, userId: string) => Promise<Result>,
): Promise<Result> => {
  const { userId } = await provePassword(deps, call, password)
  return steppingUp<Result>(deps, call, async sql => {
    const passed = await passFactor(sql, deps, call, userId, proof)
    return passed instanceof DomainError ? passed : act(sql, userId)
  })
}

/**
 * Asks for no code any more; all other sessions end.
 * @throws DomainError `invalid_credentials`, `invalid_mfa_code`, `sign_in_rate_limited`, `login_busy`
 */
export const removeTotp = async (
  deps: LoginDependencies,
  call: Call,
  body: FactorProof & { readonly password: string },
): Promise<Reply<204, undefined>> => {
  await withBoth(deps, call, body, async (sql, userId) => {
    await removeFactor(sql, userId)
    await endOtherSessions(sql, userId, call.principal.credentialId)
    await noteEvent(sql, call, 'mfa_removed', userId)
  })
  return { status: 204 }
}

/**
 * Draws new recovery codes; those before are void.
 * @throws DomainError `invalid_credentials`, `invalid_mfa_code`, `sign_in_rate_limited`, `login_busy`
 */
export const renewRecoveryCodes = async (
  deps: LoginDependencies,
  call: Call,
  body: FactorProof & { readonly password: string },
): Promise<Reply<200, RecoveryCodes>> => {
  const codes = await withBoth(deps, call, body, async (sql, userId) => {
    const made = await newRecoveryCodes(sql, userId)
    await noteEvent(sql, call, 'recovery_codes_renewed', userId)
    return made
  })
  return { status: 200, body: { recovery_codes: codes } }
}
