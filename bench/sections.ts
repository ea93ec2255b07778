/** The sections of the benchmark page, in their order. */
import { spawnSync } from 'node:child_process'

export interface Section {
  readonly title: string
  /** A script of this folder. */
  readonly script: string
  readonly args?: readonly string[]
  /** It prints Markdown; otherwise lines. */
  readonly table: boolean
  /** What its figures mean. */
  readonly about: string
  /** What it needs and what is not there; undefined: nothing. Then the page keeps what was measured before. */
  readonly missing?: () => string | undefined
}

const noApiServer = (): string | undefined =>
  process.env['SERVICE_BENCH_API_KUBECONFIG'] === undefined
    ? 'it needs an API-only cluster of its own: SERVICE_BENCH_API_KUBECONFIG, with its audit log in SERVICE_TEST_API_AUDIT_LOG'
    : undefined

const isThere = (program: string): boolean => spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0

/** More than an hour, and the cluster is not of much use after it. */
const LONG = 'BENCH_LONG'

/** Variables that are not set: those that lead to a cluster, and the word that it may be used up. */
const unset = (...names: readonly string[]): string | undefined => {
  const missing = names.filter(name => (process.env[name] ?? '') === '')
  return missing.length === 0 ? undefined : `set ${missing.join(' and ')}`
}

export const SECTIONS: readonly Section[] = [
  {
    title: 'A whole single box',
    script: 'single-box.ts',
    table: true,
    about:
      'Through the public API, databases on disk with every flush done; `ready` includes a proven sign-in. The client polls every 10 ms.',
  },
  {
    title: 'Kubernetes, on a node',
    script: 'kubernetes-node.ts',
    table: true,
    about:
      'Both charts installed by Helm, calls through the public API, images present on the node. `ready`: the operator has proven a sign-in through the Service and the operation has succeeded; “signed in”: a client has fetched the connection and has a session. The floor, in the same run: a bare StatefulSet of the same image and figures, made of the same template, to pod Ready. By hand: `BENCH_NODE=1 node bench/kubernetes-node.ts` with `KUBECONFIG` of a cluster whose environments may be deleted; `SERVICE_TEST_AUDIT_LOG` is its audit log. The aims of calls are for one environment more in a project; its first one makes four calls more, for what belongs to the namespace (a ServiceAccount, a NetworkPolicy, two RoleBindings): below the tables.',
    missing: () => unset('KUBECONFIG', 'BENCH_NODE'),
  },
  {
    title: 'Images',
    script: 'images.ts',
    table: true,
    about:
      'Built by `tools/images.sh`. Starts are timed from the command that runs a container to its first answer, median of five; the floor is a container that does nothing but answer. By hand: `node bench/images.ts`.',
    missing: () =>
      ['docker', 'podman', 'buildah'].some(isThere) ? undefined : 'it needs docker, podman or buildah to build images',
  },
  {
    title: 'What a call costs a cluster',
    script: 'kubernetes-call-costs.ts',
    table: true,
    about:
      'CPU of the API server, and of etcd and the controllers together, for each of 300 calls by sixteen writers, of the objects that an environment is made of. What is made by server-side apply costs more than what is created, and a StatefulSet more than all else. By hand: `node bench/kubernetes-call-costs.ts`.',
    missing: () => noApiServer() ?? unset('SERVICE_TEST_API_SERVER_PID_FILE'),
  },
  {
    title: 'Our reflector beside the client’s informer',
    script: 'kubernetes-informer.ts',
    table: true,
    about:
      'Both follow the Environments of a namespace, each through a proxy that counts and breaks; the informer of `@kubernetes/client-node` is started again five seconds after an error, as its documentation shows. By hand: `node bench/kubernetes-informer.ts`.',
    missing: noApiServer,
  },
  {
    title: 'Kubernetes at scale',
    script: 'kubernetes-scale.ts',
    table: true,
    about:
      'Environments on a real API server with its real controllers; pods, volumes, network and servers are played by a process of their own, and the operator is a process as in production. Calls and latencies are from the audit log; what belongs to a project’s namespace is counted apart, as `project` in bench/call-budget.json. The operator’s heap may grow as far as its pod’s limit lets it, and is divided as the chart says (`--max-old-space-size=256 --max-semi-space-size=4`). By hand: `node bench/kubernetes-scale.ts` for 2,000 environments, `--environments 10000` for more; on a cluster that is thrown away after it.',
    missing: noApiServer,
  },
  {
    title: 'Kubernetes at scale, 10,000',
    script: 'kubernetes-scale.ts',
    args: ['--environments', '10000', '--no-floor', '--quiet-seconds', '300'],
    table: true,
    about:
      'The same with 10,000 environments in 500 projects, five minutes of quiet, and no floor. By hand, on a new cluster: `BENCH_LONG=1 node bench/run.ts 10,000`.',
    missing: () => noApiServer() ?? unset(LONG),
  },
  {
    title: 'Server CPU of GET environment',
    script: 'get-environment.ts',
    table: false,
    about:
      'Server CPU of a call. Against the same server that looks its caller up once and for all, and against a bare express handler that sends the same row of the same select, in turns in one run. Aim: ratio ≤ 1.6 to either. Credential and membership are one statement, the row a second; rate limits are off.',
  },
  {
    title: 'Mutations',
    script: 'mutation-rate.ts',
    table: false,
    about:
      'The createEnvironment command (idempotency key, work, stored answer, audit) against a bare transaction that writes the same rows, in turns, 16 at a time. Aim: ratio ≥ 0.5.',
  },
  {
    title: 'The embedded store',
    script: 'embedded-store.ts',
    table: false,
    about:
      'Writes and watch latency on a durable Postgres; `bare` is one updated row a commit. Commits of the store are serial by design (docs/adr/0004).',
  },
  {
    title: 'Times of refused sign-ins',
    script: 'sign-in-timing.ts',
    table: false,
    about:
      'Five states of an account, in turns, each attempt on an account and from an address of its own, one at a time against an API server process. AUC: the chance that one state takes longer than the other; 0.5 tells nothing. The band holds 95 % of what equal distributions give. Aim: 0.5 ± 0.03.',
  },
  {
    title: 'The login under siege',
    script: 'login-siege.ts',
    table: false,
    about:
      'Bad sign-ins at an even rate from 1,200 addresses, half of them at accounts that there are, against an API server process; client, database and flood share its cores. Times count from the moment at which a call was due. Good users come one after another for the whole time: those who signed in from their address before, and strangers. Aim: p99 of other calls < 2 × without, in the same run; good users in within 2 s.',
  },
]
