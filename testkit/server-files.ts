/** What tests of Postgres processes share: one template a test process, and folders that the server's account can enter. */
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { embeddedBinaries, type PostgresBinaries } from '../runtime/postgres/binaries.ts'
import { type RunAs, runAs } from '../runtime/postgres/run-as.ts'
import { ensureTemplate, type Template } from '../runtime/postgres/template-folder.ts'

export const testBinaries = (): PostgresBinaries => embeddedBinaries()
export const testAccount = (): RunAs | undefined => runAs(undefined)

const made = new Set<string>()

/** A temporary folder that every account can pass through; removed by `removeTestFolders`. */
export const testFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-test-'))
  chmodSync(folder, 0o711)
  made.add(folder)
  return folder
}

/** A folder below another that belongs to the server's account alone. */
export const serverFolder = (parent: string, name: string): string => {
  const folder = join(parent, name)
  mkdirSync(folder, { mode: 0o700 })
  const account = testAccount()
  if (account !== undefined) chownSync(folder, account.uid, account.gid)
  return folder
}

let template: Promise<Template> | undefined

/** The process' plain template, made at the first use. */
export const testTemplate = (): Promise<Template> =>
  (template ??= ensureTemplate(testBinaries(), testAccount(), join(testFolder(), 'templates'), {
    name: 'test',
    statements: [],
  }))

/** A TCP port on loopback that was free a moment ago, outside the range of outgoing connections. */
export const freePort = async (): Promise<number> => {
  for (;;) {
    const port = 21_000 + Math.floor(Math.random() * 10_000)
    const free = await new Promise<boolean>(resolve => {
      const server = createServer()
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
    })
    if (free) return port
  }
}

/** Removes every folder that tests made; for the root hooks. */
export const removeTestFolders = (): void => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true })
  made.clear()
  template = undefined
}
