/**
 * The roles and the database of an environment, made once in the template; an environment only gets its passwords.
 * The tenant's role owns schema `public` and not the database: an owner could change settings for our own sessions.
 */
import type { TemplateRecipe } from '../../runtime/postgres/template-folder.ts'

export const APP_DATABASE = 'app'
export const APP_ROLE = 'app'
/** The control plane's own login in the tenant's database: a member of nothing, it sees what everybody sees there. */
export const OPS_ROLE = 'svc_ops'
const OWNER_ROLE = 'svc_app_owner'

/** Connections of the control plane's login; within what settings.ts keeps free beside the tenant's. */
const OPS_CONNECTIONS = 5

const PLAIN = 'nosuperuser nocreatedb nocreaterole noreplication nobypassrls'

/** What the template of environments holds beyond an empty cluster. */
export const ENVIRONMENT_RECIPE: TemplateRecipe = {
  name: 'environment',
  statements: [
    `create role ${OWNER_ROLE} nologin ${PLAIN}`,
    `create role ${APP_ROLE} login ${PLAIN}`,
    `create role ${OPS_ROLE} login noinherit connection limit ${OPS_CONNECTIONS} ${PLAIN}`,
    // A second line of defence: our sessions say the same when they connect.
    `alter role ${OPS_ROLE} set search_path = pg_catalog, pg_temp`,
    `alter role ${OPS_ROLE} set statement_timeout = '15s'`,
    `alter role ${OPS_ROLE} set lock_timeout = '3s'`,
    `alter role ${OPS_ROLE} set idle_in_transaction_session_timeout = '30s'`,
    `create database ${APP_DATABASE} owner ${OWNER_ROLE}`,
    ...[APP_DATABASE, 'postgres', 'template1', 'template0'].map(
      database => `revoke all on database ${database} from public`,
    ),
    `grant connect, create, temporary on database ${APP_DATABASE} to ${APP_ROLE}`,
    `grant connect on database ${APP_DATABASE} to ${OPS_ROLE}`,
  ]
    .map(sql => ({ database: 'postgres', sql }))
    .concat({ database: APP_DATABASE, sql: `alter schema public owner to ${APP_ROLE}` }),
}
