import { z } from 'zod'
import { MAX_TTL_HOURS } from '../../lib/model/environment.ts'
import { BYTES_QUANTITY, CPU_QUANTITY } from '../../lib/model/quantity.ts'
import { hostAndPort } from '../../runtime/config/listen-address.ts'
import { LOG_LEVELS } from '../../runtime/log/json-log.ts'
import { AUTH_MODES } from './auth-modes.ts'

const flag = z.enum(['0', '1']).default('0')

/** A whole number between two, written in digits. */
const count = (min: number, max: number, preset: number) =>
  z
    .string()
    .regex(/^[0-9]{1,9}$/, `must be a whole number between ${min} and ${max}`)
    .transform(Number)
    .pipe(z.int().min(min).max(max))
    .default(preset)

const cap = count(0, 1_000_000, 0)
// Not z.url(): postgres://user@/name?host=/folder, through a socket, is none to WHATWG.
const postgresUrl = z.string().regex(/^postgres(ql)?:\/\/\S+$/, 'must be a postgres:// URL')
const cpu = (preset: string) => z.string().regex(CPU_QUANTITY, 'must be like 500m or 2').default(preset)
const bytes = (preset: string) => z.string().regex(BYTES_QUANTITY, 'must be like 256Mi or 1Gi').default(preset)

/** The variables of the API server that hold on the single box too. */
export const apiServerEnv = z.object({
  SERVICE_LISTEN: hostAndPort.default('127.0.0.1:8080').describe('Where the API listens'),
  SERVICE_METRICS_LISTEN: hostAndPort.default('127.0.0.1:9464').describe('Where metrics listen, for Prometheus'),
  SERVICE_PUBLIC_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(
      'The base URL that clients use. Without it problem documents link relatively, and a token’s revoke_url is below where the API listens',
    ),
  SERVICE_CONSOLE_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(
      'The base URL of the console, below which links lead: of letters, of new passwords and invitations, of the device flow. Default: SERVICE_PUBLIC_URL, else where the API listens. Needed where mail is configured; without it and SERVICE_PUBLIC_URL nobody can come back from an organization’s single sign-on (409 console_not_configured)',
    ),
  SERVICE_AUTH_MODE: z
    .enum(AUTH_MODES)
    .optional()
    .describe(
      'Who says who people are: the builtin login, or an identity provider (oidc). Default: builtin on the single box, oidc elsewhere',
    ),
  SERVICE_OIDC_ISSUER_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('The identity provider: its issuer, exactly as its metadata say it'),
  SERVICE_OIDC_INTROSPECTION_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('Where it is asked about tokens (RFC 7662); default: what its metadata say'),
  SERVICE_OIDC_CLIENT_ID: z.string().min(1).max(255).optional().describe('Whom we are to it'),
  SERVICE_OIDC_CLIENT_SECRET: z.string().min(1).max(4096).optional().describe('The secret for that'),
  SERVICE_OIDC_AUDIENCE: z
    .string()
    .min(1)
    .max(1024)
    .optional()
    .describe('Whom its tokens have to be meant for; default: the client id'),
  SERVICE_OIDC_CA_FILE: z
    .string()
    .min(1)
    .optional()
    .describe('PEM file with the authorities of a private provider, trusted beside the usual ones'),
  SERVICE_OIDC_OPERATOR_CLAIMS: z
    .string()
    .max(4096)
    .default('')
    .describe(
      'Who operates this service: claims of its tokens with their values, separated by commas, one of which is enough, e.g. groups=platform-admins,sub=auth0|ada',
    ),
  SERVICE_SSO_ALLOWED_CIDRS: z
    .string()
    .default('')
    .describe(
      'Networks in which organizations may have identity providers beside public addresses, CIDRs separated by commas; with addresses of this machine among them those may speak http',
    ),
  SERVICE_SSO_CA_FILE: z
    .string()
    .min(1)
    .optional()
    .describe('PEM file with the authorities of private providers of organizations, trusted beside the usual ones'),
  SERVICE_ADMIN_EMAIL: z
    .string()
    .max(320)
    .optional()
    .describe('Address of the first administrator; without a hash the setup token makes only this one'),
  SERVICE_ADMIN_PASSWORD_HASH: z
    .string()
    .max(512)
    .optional()
    .describe(
      'Password of that administrator, an argon2id PHC string, as `node apiserver/hash-password.ts` makes it of standard input; put in force at the next start, once for each change',
    ),
  SERVICE_LOG_LEVEL: z.enum(LOG_LEVELS).default('info').describe('The lowest level that is logged'),
  SERVICE_TRUSTED_PROXIES: z
    .string()
    .default('')
    .describe('Networks of proxies in front, CIDRs separated by commas, whose X-Forwarded-For is believed'),
  SERVICE_PUBLIC_SIGNUP: flag.describe(
    '1 lets everybody create organizations, not only operators; whoever proves a new address by a sign-in link gets an account',
  ),
  SERVICE_PREVIEW_DEFAULT_TTL_HOURS: count(0, MAX_TTL_HOURS, 72).describe(
    'Hours that a preview lives when its creator says nothing; 0: it does not expire',
  ),
  SERVICE_OPERATOR_NAMESPACE: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be a namespace name')
    .default('svc-system')
    .describe('Namespace in which the operator leaves records of what it deleted'),
  SERVICE_DATABASE_POOL_MAX: count(2, 200, 10).describe('Connections to the control-plane database at most'),
  SERVICE_DATABASE_TIMEOUT_SECONDS: count(1, 60, 10).describe(
    'How long one statement on the control-plane database may take before its call is answered 503',
  ),
  SERVICE_OPERATION_DEADLINE_SECONDS: count(10, 86_400, 900).describe(
    'How long an operation may take before it ends as failed',
  ),
  SERVICE_RATE_LIMIT_PER_MINUTE: count(0, 10_000_000, 3000).describe('Requests per credential and minute; 0: no limit'),
  SERVICE_RATE_LIMIT_MUTATIONS_PER_MINUTE: count(0, 10_000_000, 1000).describe(
    'Requests that change something, per credential and minute; 0: no limit',
  ),
  SERVICE_RATE_LIMIT_CONNECTION_PER_MINUTE: count(0, 10_000_000, 30).describe(
    'Reads of an environment’s connection, per credential and minute; 0: no limit',
  ),
  SERVICE_RATE_LIMIT_VERIFY_PER_MINUTE: count(0, 10_000_000, 6).describe(
    'Verifications of an audit log, per organization and minute, since each reads all of it; 0: no limit',
  ),
  SERVICE_RATE_LIMIT_ANONYMOUS_PER_MINUTE: count(0, 10_000_000, 60).describe(
    'Requests without a valid credential, per address and minute; 0: no limit',
  ),
  SERVICE_RATE_LIMIT_BURST: count(1, 1_000_000, 500).describe('Requests that may come at once within a limit'),
  SERVICE_LOGIN_MAX_FAILURES: count(1, 1000, 10).describe(
    'Failed passwords of an account within 15 minutes that lock it',
  ),
  SERVICE_LOGIN_LOCKOUT_SECONDS: count(1, 86_400, 900).describe('How long a locked account stays locked'),
  SERVICE_SESSION_IDLE_SECONDS: count(60, 2_592_000, 7200).describe('How long a session lives without a request'),
  SERVICE_SESSION_ABSOLUTE_SECONDS: count(60, 31_536_000, 43_200).describe('How long a session lives in all'),
  SERVICE_SESSION_ROTATE_SECONDS: count(1, 86_400, 900).describe(
    'How long a session keeps its token until it gets the next',
  ),
  SERVICE_MAIL_WEBHOOK_URL: z
    .url({ protocol: /^https$/ })
    .optional()
    .describe('An https:// relay that takes letters as JSON {to, subject, text, html}; it goes before SMTP'),
  SERVICE_MAIL_WEBHOOK_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]{1,4096}$/, 'must be printable ASCII without blanks')
    .optional()
    .describe('The bearer that the relay asks for'),
  SERVICE_DEFAULT_SMTP_HOST: z
    .string()
    .regex(/^[A-Za-z0-9.:_-]{1,253}$/, 'must be the name or the address of a server')
    .optional()
    .describe('A mail server, over TLS only; letters go there where no relay is set'),
  SERVICE_DEFAULT_SMTP_PORT: count(1, 65_535, 587).describe(
    'Its port: 465 begins with TLS, with any other one the server must offer STARTTLS',
  ),
  SERVICE_DEFAULT_SMTP_USER: z.string().min(1).max(1024).optional().describe('Whom to sign in as there'),
  SERVICE_DEFAULT_SMTP_PASSWORD: z.string().min(1).max(4096).optional().describe('The password for that'),
  SERVICE_DEFAULT_SMTP_ADMIN_EMAIL: z
    .string()
    .optional()
    .describe('The address that letters are from; without it SMTP is not used'),
  SERVICE_MAIL_CA_FILE: z
    .string()
    .min(1)
    .optional()
    .describe('PEM file with the authorities of a private relay or mail server, trusted beside the usual ones'),
  SERVICE_STOP_GRACE_SECONDS: count(0, 300, 5).describe(
    'How long a stopping server still answers while connections are open, so that their clients and load balancers notice',
  ),
  SERVICE_STOP_DRAIN_SECONDS: count(0, 300, 20).describe('How long requests in flight may take after that'),
  SERVICE_PLAN_NAME: z.string().min(1).max(64).default('self-hosted').describe('Name of the plan in usage answers'),
  SERVICE_PLAN_PRICE_CENTS: count(0, 100_000_000, 0).describe('Flat price of a month in cents'),
  SERVICE_PLAN_CURRENCY: z
    .string()
    .regex(/^[A-Z]{3}$/, 'must be an ISO 4217 code')
    .default('EUR')
    .describe('Currency of the flat price'),
  SERVICE_PLAN_MAX_PROJECTS: cap.describe('Projects of an organization at most; 0: no cap'),
  SERVICE_PLAN_MAX_ENVIRONMENTS: cap.describe('Environments of an organization at most; 0: no cap'),
  SERVICE_PLAN_MAX_PROJECT_ENVIRONMENTS: cap.describe('Environments of a project at most; 0: no cap'),
  SERVICE_PLAN_CPU: cpu('500m').describe('CPU of a staging or preview environment'),
  SERVICE_PLAN_MEMORY: bytes('256Mi').describe('Memory of a staging or preview environment'),
  SERVICE_PLAN_STORAGE: bytes('1Gi').describe('Disk of a staging or preview environment'),
  SERVICE_PLAN_CONNECTIONS: count(5, 5000, 50).describe('Connections of a staging or preview environment'),
  SERVICE_PLAN_PRODUCTION_CPU: cpu('1').describe('CPU of a production environment'),
  SERVICE_PLAN_PRODUCTION_MEMORY: bytes('1Gi').describe('Memory of a production environment'),
  SERVICE_PLAN_PRODUCTION_STORAGE: bytes('10Gi').describe('Disk of a production environment'),
  SERVICE_PLAN_PRODUCTION_CONNECTIONS: count(5, 5000, 100).describe('Connections of a production environment'),
})
export type ApiServerEnv = z.infer<typeof apiServerEnv>

/** What only an API server of its own is told: on the single box the box decides these. */
export const standaloneEnv = z.object({
  SERVICE_DATABASE_URL: postgresUrl.describe('The control-plane database, as the role that serves'),
  SERVICE_DATABASE_OWNER_URL: postgresUrl
    .optional()
    .describe('The same database as the role that owns it; where it is set, migrations run at the start'),
  SERVICE_STORE: z
    .enum(['embedded', 'kubernetes'])
    .default('embedded')
    .describe('Where resources live: in a Postgres of ours, or in the cluster of the pod, else the one of kubectl'),
  SERVICE_STORE_URL: postgresUrl.optional().describe('The database of the embedded resource store'),
  SERVICE_KMS_MASTER_KEY: z.string().describe('32 bytes in base64 that seal stored secrets'),
  SERVICE_KMS_PREVIOUS_MASTER_KEYS: z
    .string()
    .default('')
    .describe('Earlier master keys, separated by commas: what they sealed is opened and sealed anew'),
})

/** What the program that migrates the control-plane database is told. */
export const migrationEnv = z.object({
  SERVICE_DATABASE_OWNER_URL: standaloneEnv.shape.SERVICE_DATABASE_OWNER_URL.unwrap(),
  SERVICE_LOG_LEVEL: apiServerEnv.shape.SERVICE_LOG_LEVEL,
})

/** This process' environment. The one place where the API server reads it. */
export const processEnvironment = (): Readonly<Record<string, string | undefined>> => process.env
