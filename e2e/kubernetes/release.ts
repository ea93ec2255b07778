/** The product as an administrator installs it, once for all scenarios of a run. */
import { atEnd } from '../../testkit/at-end.ts'
import { AuditLog, auditLogOf } from '../../testkit/kubernetes/audit-log.ts'
import { nodeCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import type { ClusterWorld } from './cluster-world.ts'
import { type Installation, installationOn } from './installation.ts'
import { Witness } from './witness.ts'

/** An installation, and a world in which scenarios play on it. */
export interface Release extends Pick<Installation, 'kubectl' | 'helm' | 'upgrade' | 'rollback'> {
  readonly cluster: TestCluster
  readonly world: ClusterWorld
  /** Sees all that the run shows. */
  readonly witness: Witness
  /** What was asked of the API server since; undefined where nobody said where that is written. */
  readonly audit: AuditLog | undefined
}

let installed: Promise<Release> | undefined

/** The one installation of this test process; removed at its end. */
export const installedRelease = (): Promise<Release> => (installed ??= install())

const install = async (): Promise<Release> => {
  const cluster = await nodeCluster()
  const installation = installationOn(cluster, 'e2e/kubernetes/values.yaml')
  // Whoever looks for a fault wants to find it as it was.
  if (process.env['E2E_KEEP'] !== '1') atEnd(() => installation.uninstall())
  const auditPath = auditLogOf('node')
  const audit = auditPath === undefined ? undefined : new AuditLog(auditPath)
  // It sees the kinds that are there when it begins.
  await cluster.installKinds()
  const witness = await Witness.start(await cluster.open('svc-witness'), installation.config)
  atEnd(() => witness.stop())
  await installation.upgrade()
  const { world, token } = await installation.enter()
  atEnd(() => world.close())
  witness.plant('the token of the API', token)
  return { ...installation, cluster, world, witness, audit }
}
