/**
 * The host of a single box: each environment is a Postgres server on this machine, in a folder of its own with its intent
 * beside its data. One process at a time may have a home. Nothing here knows the resource store.
 */
import { mkdir, readdir } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { Registry } from 'prom-client'
import type { DeletionPolicy } from '../../../lib/model/environment.ts'
import type { ResourceKey } from '../../../lib/model/resource.ts'
import type { CredentialSet } from '../../../runtime/credentials/credentials.ts'
import { removeLeftovers } from '../../../runtime/files/durable-file.ts'
import type { Log } from '../../../runtime/log/log.ts'
import { type PostgresBinaries, postgresVersion } from '../../../runtime/postgres/binaries.ts'
import { isInitialized } from '../../../runtime/postgres/create-data-folder.ts'
import type { RunAs } from '../../../runtime/postgres/run-as.ts'
import { ensureTemplate, type Template } from '../../../runtime/postgres/template-folder.ts'
import { applyPasswords } from '../apply-roles.ts'
import { ENVIRONMENT_RECIPE } from '../database-roles.ts'
import {
  ConditionError,
  type Destroyed,
  type Host,
  type InstanceRef,
  type InstanceSpec,
  type InstanceState,
  type ObservedInstance,
  type SignIn,
} from '../host.ts'
import { signInOverTcp } from '../sign-in.ts'
import { conditionError, failureOf } from './failure-reason.ts'
import { type HostFolders, hostFolders, INTENT_FILE, instanceFolders, REMOVED_PREFIX } from './folders.ts'
import { Instance } from './instance.ts'
import { newIntent, readIntent } from './intent.ts'
import { localMetrics } from './local-metrics.ts'
import { NewData } from './new-data.ts'
import { ownAddress } from './own-address.ts'
import { type PortRange, Ports } from './ports.ts'
import { finishRemovals, moveToTrash, removeFolder, removeSockets, sweepTrash } from './remove-data.ts'
import { ensureServerTls, isLoopback, type ServerTls } from './server-tls.ts'
import { StartSlots } from './start-slots.ts'
import { DEFAULT_TIMES, type Reach, type Surroundings, type Times } from './surroundings.ts'

const DAY_MS = 86_400_000

export interface LocalHostConfig {
  /** Holds `environments`, `trash`, `templates`, `ahead`, `sockets`, `tls`. Postgres' account can pass through to it. */
  readonly home: string
  /** A folder closed to everybody else: gets the key of our certificate authority, where there is one. */
  readonly secretsFolder: string
  readonly binaries: PostgresBinaries
  /** Who Postgres runs as; undefined: ourselves. */
  readonly account: RunAs | undefined
  readonly reach: Reach
  readonly ports: PortRange
  /** How long the data of a retained environment is kept in the trash. Default: 7. */
  readonly retentionDays?: number
  readonly times?: Partial<Times>
  readonly registry?: Registry
  readonly log: Log
}

/** What is known of an instance on this machine, for checks and for people. */
export interface ListedInstance {
  readonly folder: string
  readonly key: ResourceKey
  readonly uid: string
  readonly wanted: 'running' | 'stopped' | 'destroyed'
  readonly state: InstanceState
  readonly port: number
  readonly pid?: number
}

/** The host of a single box, opened. */
export interface LocalHost extends Host {
  /** PEM of the authority that signs the servers' certificates; undefined where environments are reached through loopback only. */
  caCertificate(): string | undefined
  listInstances(): readonly ListedInstance[]
  /** Ends all supervision. Databases are stopped cleanly and come back with the next start, or they are left running. */
  stopAll(options: { readonly keepDatabases: boolean }): Promise<void>
}

/**
 * Opens a home: adopts the servers that still run, starts those that should (a few at a time, in the background), goes on with
 * what a crash cut short, and watches over all of them from then on.
 * @throws Error when the home cannot be used
 */
export const openLocalHost = async (config: LocalHostConfig): Promise<LocalHost> => {
  const folders = hostFolders(config.home)
  for (const folder of [folders.environments, folders.trash]) await mkdir(folder, { recursive: true, mode: 0o711 })
  const host = new OpenLocalHost(config, folders, await postgresVersion(config.binaries))
  await host.open()
  return host
}

class OpenLocalHost implements LocalHost {
  readonly #config: LocalHostConfig
  readonly #folders: HostFolders
  readonly #surroundings: Surroundings
  readonly #instances = new Map<string, Instance>()
  readonly #arriving = new Map<string, Promise<Instance>>()
  readonly #listeners = new Set<(key: ResourceKey) => void>()
  readonly #times: Times
  #template: Promise<Template> | undefined
  #tls: ServerTls | undefined
  #timers: NodeJS.Timeout[] = []

  constructor(config: LocalHostConfig, folders: HostFolders, postgres: string) {
    this.#config = config
    this.#folders = folders
    this.#times = { ...DEFAULT_TIMES, ...config.times }
    const slots = new StartSlots(2 * availableParallelism())
    this.#surroundings = {
      folders,
      binaries: config.binaries,
      postgres,
      account: config.account,
      reach: config.reach,
      ports: new Ports(config.ports, config.reach.listen, folders.home),
      slots,
      times: this.#times,
      metrics: localMetrics(
        config.registry,
        () => this.#countStates(),
        () => this.#countLowDisks(),
      ),
      log: config.log,
      template: () => this.#makeTemplate(),
      newData: new NewData({
        folder: folders.ahead,
        template: () => this.#makeTemplate(),
        slots,
        aheadAfterMs: this.#times.aheadAfter,
        onError: error => this.#complain('make-ahead', error),
      }),
      tls: () => this.#tls,
      changed: ({ key }) => this.#tell(key),
    }
  }

  async open(): Promise<void> {
    await this.#ensureTls()
    await finishRemovals(this.#folders.environments)
    for (const name of await readdir(this.#folders.environments))
      if (!name.startsWith(REMOVED_PREFIX)) await this.#load(name)
    await Promise.all([...this.#instances.values()].map(instance => instance.wake()))
    this.#every(this.#times.tick, 'look', () => {
      const now = Date.now()
      for (const instance of this.#instances.values()) instance.look(now)
    })
    this.#every(this.#times.sweepEvery, 'sweep', () => this.#sweep())
    this.#inBackground('sweep', () => this.#sweep())
    this.#surroundings.newData.prepare()
  }

  // ---- the port

  async observe(ref: InstanceRef): Promise<ObservedInstance> {
    const instance = this.#find(ref)
    if (instance !== undefined) return instance.observe()
    // A folder without an intent is what a crash at the very beginning of a start leaves.
    const initialized = isInitialized(instanceFolders(this.#folders, ref).data)
    return { state: initialized ? 'stopped' : 'absent', initialized, startFailures: 0 }
  }

  async start(ref: InstanceRef, spec: InstanceSpec): Promise<void> {
    const instance = this.#find(ref) ?? (await this.#arrive(ref, spec))
    await instance.start(spec)
  }

  async stop(ref: InstanceRef): Promise<void> {
    await this.#find(ref)?.stop()
  }

  /** Nobody but us removes a folder: what becomes of it is said at its end. */
  async setDeletionPolicy(): Promise<void> {}

  async destroy(ref: InstanceRef, policy: DeletionPolicy): Promise<Destroyed> {
    await this.#arriving.get(ref.uid)?.catch(() => undefined)
    const folders = instanceFolders(this.#folders, ref)
    const instance = this.#find(ref)
    if (instance !== undefined) {
      const keep = policy === 'Retain' && isInitialized(folders.data)
      await instance.end(keep ? this.#retainedUntil(instance) : undefined)
      if (!instance.gone) return { done: false }
      await instance.exclusively(async () => {
        await removeSockets(folders, instance.intent.port)
        await (keep ? moveToTrash(folders) : removeFolder(folders.root))
      })
      this.#instances.delete(ref.uid)
      this.#surroundings.ports.giveBack(instance.intent.port, ref.uid)
    } else if (!isInitialized(folders.data)) await removeFolder(folders.root)
    else
      throw new ConditionError(
        'StorageReady',
        'IntentUnreadable',
        `Cannot remove ${folders.name}: its intent cannot be read`,
      )
    return { done: true, ...(await this.#kept(ref)) }
  }

  async applyCredentials(ref: InstanceRef, credentials: CredentialSet): Promise<void> {
    const instance = this.#find(ref)
    if (instance === undefined) throw new Error(`Cannot set passwords: ${ref.key.name} is not on this host`)
    await applyPasswords(instance.address, credentials)
  }

  async signIn(ref: InstanceRef, credentials: CredentialSet): Promise<SignIn> {
    const instance = this.#find(ref)
    if (instance === undefined) return { result: 'unreachable', message: 'Not on this host' }
    const { listen, host } = this.#config.reach
    const door = {
      // The way to this machine that clients take need not lead from here to here.
      host: ownAddress(listen),
      port: instance.intent.port,
      ...(this.#tls === undefined ? {} : { tls: { ca: this.#tls.caCertificate, servername: host } }),
    }
    return signInOverTcp(door, credentials.app)
  }

  onChange(listener: (key: ResourceKey) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  // ---- of the single box

  caCertificate(): string | undefined {
    return this.#tls?.caCertificate
  }

  listInstances(): readonly ListedInstance[] {
    return [...this.#instances.values()].map(({ folders, intent, state, pid }) => ({
      folder: folders.root,
      key: intent.key,
      uid: intent.uid,
      wanted: intent.wanted,
      state,
      port: intent.port,
      ...(pid === undefined ? {} : { pid }),
    }))
  }

  async stopAll({ keepDatabases }: { readonly keepDatabases: boolean }): Promise<void> {
    for (const timer of this.#timers.splice(0)) clearInterval(timer)
    await this.#surroundings.newData.close()
    await Promise.all(
      Array.from(this.#instances.values(), instance => (keepDatabases ? instance.leave() : instance.shutDown())),
    )
  }

  // ---- instances

  #find(ref: InstanceRef): Instance | undefined {
    return this.#instances.get(ref.uid)
  }

  /** Reads the intent of a folder. One that cannot be read is left alone: its data is somebody's. */
  async #load(name: string): Promise<void> {
    const file = join(this.#folders.environments, name, INTENT_FILE)
    try {
      await removeLeftovers(join(this.#folders.environments, name))
      const intent = await readIntent(file)
      if (intent === undefined) return
      const folders = instanceFolders(this.#folders, intent)
      if (folders.name !== name) throw new Error(`Cannot use ${file}: it belongs to ${folders.name}`)
      this.#surroundings.ports.keep(intent.port, intent.uid)
      this.#instances.set(intent.uid, new Instance(this.#surroundings, folders, intent))
    } catch (error) {
      this.#surroundings.metrics.errors.inc({ work: 'load' })
      this.#config.log.error({ folder: name, err: error }, 'Cannot take over an environment; its folder is left alone')
    }
  }

  /** Makes a place for an instance that is new here: a folder, a port, an intent. Once, however many ask. */
  #arrive(ref: InstanceRef, spec: InstanceSpec): Promise<Instance> {
    const under = this.#arriving.get(ref.uid)
    if (under !== undefined) return under
    const arrival = this.#makePlace(ref, spec).finally(() => this.#arriving.delete(ref.uid))
    this.#arriving.set(ref.uid, arrival)
    return arrival
  }

  async #makePlace(ref: InstanceRef, spec: InstanceSpec): Promise<Instance> {
    const folders = instanceFolders(this.#folders, ref)
    const { ports } = this.#surroundings
    if (isInitialized(folders.data) || (await this.#isTaken(folders.intentFile)))
      throw new ConditionError('StorageReady', 'FolderTaken', `Cannot use folder ${folders.name}: it holds other data`)
    let port: number | undefined
    try {
      await mkdir(folders.root, { recursive: true, mode: 0o711 })
      port = await ports.give(ref.uid).catch((cause: unknown) => {
        if (cause instanceof Error && 'code' in cause) throw cause
        throw new ConditionError('DatabaseReachable', 'NoPortLeft', (cause as Error).message, cause)
      })
      const instance = new Instance(this.#surroundings, folders, newIntent(ref, spec, port))
      this.#instances.set(ref.uid, instance)
      return instance
    } catch (error) {
      if (port !== undefined) ports.giveBack(port, ref.uid)
      throw error instanceof ConditionError ? error : conditionError(failureOf(error), error)
    }
  }

  async #isTaken(intentFile: string): Promise<boolean> {
    return (await readIntent(intentFile).catch(() => 'unreadable')) !== undefined
  }

  /** How long it is kept, decided at the first destroy and the same in every answer after. */
  #retainedUntil(instance: Instance): string {
    const days = this.#config.retentionDays ?? 7
    return instance.intent.retainedUntil ?? new Date(Date.now() + days * DAY_MS).toISOString()
  }

  async #kept(ref: InstanceRef): Promise<{ retainedAt?: string; retainedUntil?: string }> {
    const { trash } = instanceFolders(this.#folders, ref)
    const intent = await readIntent(join(trash, INTENT_FILE)).catch(() => undefined)
    if (intent?.uid !== ref.uid) return {}
    return { retainedAt: trash, ...(intent.retainedUntil === undefined ? {} : { retainedUntil: intent.retainedUntil }) }
  }

  // ---- background

  #makeTemplate(): Promise<Template> {
    if (this.#template === undefined) {
      const { binaries, account } = this.#config
      this.#template = ensureTemplate(binaries, account, this.#folders.templates, ENVIRONMENT_RECIPE)
      this.#template.catch(() => {
        this.#template = undefined
      })
    }
    return this.#template
  }

  /** @returns whether servers have to read a new certificate */
  async #ensureTls(): Promise<boolean> {
    const { reach, account, secretsFolder } = this.#config
    if (isLoopback(reach.listen)) return false
    const { renewed, ...tls } = await ensureServerTls(
      { folder: this.#folders.tls, secretsFolder, account, host: reach.host },
      new Date(),
    )
    this.#tls = tls
    return renewed
  }

  async #sweep(): Promise<void> {
    if (await this.#ensureTls()) for (const instance of this.#instances.values()) instance.reload()
    await sweepTrash(this.#folders.trash, new Date(), this.#config.log)
  }

  #every(ms: number, work: string, run: () => void | Promise<void>): void {
    const timer = setInterval(() => this.#inBackground(work, run), ms)
    timer.unref()
    this.#timers.push(timer)
  }

  #inBackground(work: string, run: () => void | Promise<void>): void {
    Promise.resolve()
      .then(run)
      .catch((error: unknown) => this.#complain(work, error))
  }

  #complain(work: string, error: unknown): void {
    this.#surroundings.metrics.errors.inc({ work })
    this.#config.log.error({ err: error }, `Trouble with ${work}`)
  }

  #tell(key: ResourceKey): void {
    for (const listener of this.#listeners) this.#inBackground('tell', () => listener(key))
  }

  #countStates(): ReadonlyMap<InstanceState, number> {
    const counts = new Map<InstanceState, number>()
    for (const { state } of this.#instances.values()) counts.set(state, (counts.get(state) ?? 0) + 1)
    return counts
  }

  #countLowDisks(): number {
    return [...this.#instances.values()].filter(({ diskLow }) => diskLow).length
  }
}
