/** What an error or a failed start means for an environment: the condition and its reason. */
import { ADDRESS_UNAVAILABLE, DISK_FULL, judgeLastWords, scrub } from '../../../runtime/postgres/last-words.ts'
import { StartError } from '../../../runtime/postgres/start-server.ts'
import { ConditionError, type InstanceFailure } from '../host.ts'

/** What an error on the way to a start means. */
export const failureOf = (error: unknown): InstanceFailure => {
  if (error instanceof ConditionError) return { reason: error.reason, message: error.message }
  if (error instanceof StartError) return error.failure
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT') return DISK_FULL
  if (code === 'EADDRNOTAVAIL') return ADDRESS_UNAVAILABLE
  if (code === 'EACCES' || code === 'EROFS' || code === 'EIO')
    return { reason: 'StorageUnavailable', message: `The folder of the data cannot be used (${code})` }
  return judgeLastWords(message, 0) ?? { reason: 'StartFailed', message: `Postgres does not start: ${scrub(message)}` }
}

const STORAGE_REASONS = new Set(['DiskFull', 'StorageUnavailable', 'DataMissing'])

/** The failure as the error that sets its condition. */
export const conditionError = ({ reason, message }: InstanceFailure, cause?: unknown): ConditionError =>
  new ConditionError(STORAGE_REASONS.has(reason) ? 'StorageReady' : 'DatabaseReachable', reason, message, cause)
