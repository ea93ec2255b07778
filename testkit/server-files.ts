/** What tests of Postgres processes share: one template a test process, and folders that the server's account can enter. */
import { chmodSync, chownSync, mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PostgresBinaries } from '../runtime/postgres/binaries.ts'
import { reachableBinaries } from '../runtime/postgres/reachable-binaries.ts'
import { type RunAs, runAs } from '../runtime/postgres/run-as.ts'
import { ensureTemplate, type Template } from '../runtime/postgres/template-folder.ts'
import { newTemporaryFolder } from './test-folder.ts'

export const testAccount = (): RunAs | undefined => runAs(undefined)

let binaries: Promise<PostgresBinaries> | undefined

/** The Postgres that tests run; of a checkout that its account cannot enter, a copy that later runs find again. */
export const testBinaries = (): Promise<PostgresBinaries> =>
  (binaries ??= reachableBinaries(testAccount(), join(tmpdir(), 'svc-test-postgres')))

const made = new Set<string>()

/** A temporary folder that every account can pass through; removed by `removeTestFolders`. */
export const testFolder = (): string => {
  const folder = newTemporaryFolder()
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
  (template ??= testBinaries().then(found =>
    ensureTemplate(found, testAccount(), join(testFolder(), 'templates'), { name: 'test', statements: [] }),
  ))

/** Removes every folder that tests made; for the root hooks. */
export const removeTestFolders = (): void => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true })
  made.clear()
  template = undefined
}
