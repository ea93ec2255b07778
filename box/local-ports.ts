import type { Registry } from 'prom-client'
import type { MasterKeys } from '../lib/credentials/seal.ts'
import type { Host } from '../operator/host/host.ts'
import { openLocalHost } from '../operator/host/local/local-host.ts'
import { ownAddress } from '../operator/host/local/own-address.ts'
import type { Credentials } from '../runtime/credentials/credentials.ts'
import { EmbeddedResourceStore } from '../runtime/embedded/embedded-resource-store.ts'
import { SealedCredentials } from '../runtime/embedded/sealed-credentials.ts'
import type { Log } from '../runtime/log/log.ts'
import type { PostgresBinaries } from '../runtime/postgres/binaries.ts'
import type { RunAs } from '../runtime/postgres/run-as.ts'
import { untilBack } from '../runtime/postgres/until-back.ts'
import type { ResourceStore } from '../runtime/store/resource-store.ts'
import type { StoreClock } from '../runtime/store/store-clock.ts'
import type { BoxConfig } from './config/config.ts'
import type { HomeFolder } from './home-folder.ts'
import { DATABASE_BACK_MS } from './start-control-plane.ts'

/** What the ports are made of. */
export interface PortOptions {
  readonly storeUrl: string
  readonly masterKeys: MasterKeys
  readonly home: Pick<HomeFolder, 'dataRoot' | 'secrets'>
  readonly account: RunAs | undefined
  readonly binaries: PostgresBinaries
  readonly postgres: BoxConfig['postgres']
  readonly log: Log
  readonly registry: Registry
}

/** The ports behind which everything outside the process is. */
export interface Ports {
  /** The resource store, for one client by its name, and the clock that it tells of its time. */
  readonly store: (client: string, time?: StoreClock) => ResourceStore
  readonly credentials: Credentials
  readonly host: Host
  /** PEM of the authority of environments' servers, where they speak TLS. */
  readonly caCertificate: string | undefined
  /** Where this process reaches those servers, whatever name clients are told. */
  readonly tenantAddress: string
  /** Closes all of them; with `keepDatabases` environments run on, else they stop and come back with the next start. */
  readonly close: (options: { readonly keepDatabases: boolean }) => Promise<void>
}

/** Opens the ports of the single box: the embedded store, sealed credentials, local processes. */
export const openLocalPorts = async (options: PortOptions): Promise<Ports> => {
  const { storeUrl, masterKeys, home, binaries, account, postgres, log, registry } = options
  const stores: EmbeddedResourceStore[] = []
  const credentials = await untilBack(
    () =>
      SealedCredentials.open({
        url: storeUrl,
        clientName: 'svc-credentials',
        masterKeys,
      }),
    DATABASE_BACK_MS,
  )
  const { reach, ports } = postgres
  const host = await openLocalHost({
    home: home.dataRoot,
    secretsFolder: home.secrets,
    binaries,
    account,
    reach,
    ports,
    registry,
    log: log.child({ part: 'host' }),
  }).catch(async (error: unknown) => {
    await credentials.close()
    throw error
  })
  return {
    store: (clientName, time) => {
      const store = new EmbeddedResourceStore({ url: storeUrl, clientName, log, registry, time })
      stores.push(store)
      return store
    },
    credentials,
    host,
    caCertificate: host.caCertificate(),
    tenantAddress: ownAddress(reach.listen),
    close: async how => {
      await host.stopAll(how)
      await Promise.all([...stores.map(store => store.close()), credentials.close()])
    },
  }
}
