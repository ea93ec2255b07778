import { z } from 'zod'

const flag = z.enum(['0', '1']).default('0')

/** The variables that the single box itself reads; those of the API server and the operator are beside them. */
export const boxEnv = z.object({
  SERVICE_HOME: z.string().min(1).default('.svc').describe('Folder that holds everything: databases, secrets, logs'),
  SERVICE_POSTGRES_PORTS: z
    .string()
    .regex(/^\d{4,5}-\d{4,5}$/, 'must be two ports with a hyphen between, e.g. 20000-29999')
    .default('20000-29999')
    .describe('Ports that environments get; keep below 32768, where outgoing connections take theirs'),
  SERVICE_POSTGRES_LISTEN: z
    .union([z.ipv4(), z.ipv6()])
    .default('127.0.0.1')
    .describe('Address on which environments’ databases listen; anything but loopback turns TLS on'),
  SERVICE_POSTGRES_HOST: z
    .string()
    .min(1)
    .max(253)
    .optional()
    .describe('Name of this machine in connection_uri; default: the address of SERVICE_POSTGRES_LISTEN'),
  SERVICE_POSTGRES_USER: z
    .string()
    .min(1)
    .optional()
    .describe('Account that Postgres runs as when the control plane runs as root; default: postgres, else nobody'),
  SERVICE_KEEP_DATABASES: flag.describe('1 leaves databases running when the control plane stops'),
  SERVICE_KMS_MASTER_KEY: z
    .string()
    .optional()
    .describe('32 bytes in base64 that seal stored secrets; default: made once, in $SERVICE_HOME/secrets/master.key'),
  SERVICE_KMS_PREVIOUS_MASTER_KEYS: z
    .string()
    .default('')
    .describe('Earlier master keys, separated by commas: what they sealed is opened and sealed anew'),
  DETACH: flag.describe('For make up: 1 returns when everything is ready and leaves the control plane running'),
  ENABLE: flag.describe('For make disable-user: 1 enables the account again'),
  EMAIL: z
    .string()
    .optional()
    .describe(
      'For make user: the address of the account, or local-operator for that of make up. For make disable-user: the address, or user:<id>',
    ),
})

/** This process' environment. The one place where the single box reads it. */
export const processEnvironment = (): Readonly<Record<string, string | undefined>> => process.env
