/**
 * Data folders for new environments. Copying the template and writing it back takes most of the time of a create, so one copy is
 * made ahead while nothing else starts; a create then only renames it.
 */
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncFolder } from '../../../runtime/files/durable-file.ts'
import { createDataFolder, isInitialized } from '../../../runtime/postgres/create-data-folder.ts'
import type { Template } from '../../../runtime/postgres/template-folder.ts'
import type { StartSlots } from './start-slots.ts'

export interface NewDataOptions {
  /** Holds the copy made ahead, on the filesystem of the environments. */
  readonly folder: string
  readonly template: () => Promise<Template>
  readonly slots: StartSlots
  /** How long nothing may have started before a copy is made ahead; Infinity: never. */
  readonly aheadAfterMs: number
  readonly onError: (error: unknown) => void
}

export class NewData {
  readonly #options: NewDataOptions
  #timer: NodeJS.Timeout | undefined
  #work: Promise<void> = Promise.resolve()

  constructor(options: NewDataOptions) {
    this.#options = options
  }

  /** Makes a data folder from the template; never over one that is there. @throws Error with the reason, e.g. a full disk */
  async make(dataFolder: string): Promise<void> {
    const { folder, key } = await this.#options.template()
    const taken = isInitialized(dataFolder) || (await this.#take(join(this.#options.folder, key), dataFolder))
    if (!taken) await createDataFolder(folder, dataFolder)
    this.prepare()
  }

  /** Makes a copy ahead, once nothing has started for a while. */
  prepare(): void {
    const { aheadAfterMs, slots, onError } = this.#options
    clearTimeout(this.#timer)
    if (aheadAfterMs === Infinity) return
    this.#timer = setTimeout(() => {
      if (!slots.idle) this.prepare()
      else this.#work = this.#makeAhead().catch(onError)
    }, aheadAfterMs)
    this.#timer.unref()
  }

  /** Stops making copies; one under way is finished. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#work
  }

  async #makeAhead(): Promise<void> {
    const parent = this.#options.folder
    const { folder, key } = await this.#options.template()
    const ahead = join(parent, key)
    if (existsSync(ahead)) return
    await mkdir(parent, { recursive: true, mode: 0o711 })
    // Copies of templates that are no longer used, and what a crash left.
    for (const name of await readdir(parent)) await rm(join(parent, name), { recursive: true, force: true })
    await createDataFolder(folder, ahead)
  }

  /** Moves the copy made ahead to its place; false when there is none, or it lies on another filesystem. */
  async #take(ahead: string, dataFolder: string): Promise<boolean> {
    await this.#work
    try {
      await rename(ahead, dataFolder)
    } catch (error) {
      if (['ENOENT', 'EXDEV'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
      throw error
    }
    await syncFolder(dirname(dataFolder))
    return true
  }
}
