import { randomBytes } from 'node:crypto'
import { chmodSync, closeSync, fsyncSync, openSync, readFileSync, renameSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/** Writes a file that only we may read, all or nothing, and lasting: a crash leaves the old one or the new one. */
export const writeSecret = (path: string, content: string): void => {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  const file = openSync(temporary, 'wx', 0o600)
  try {
    writeSync(file, content)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(temporary, path)
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** A secret file's content, or undefined when there is none. A mode that a copy or a backup widened is narrowed again. */
export const readSecret = (path: string): string | undefined => {
  try {
    const content = readFileSync(path, 'utf8')
    if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600)
    return content
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
