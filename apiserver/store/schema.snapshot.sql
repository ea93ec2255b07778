-- What the migrations make, for reading; compared by schema-snapshot.test.ts. Never edited by hand.
account_events.id bigint not null
account_events.type text not null
account_events.user_id text
account_events.email text
account_events.client_ip text
account_events.user_agent text
account_events.occurred_at timestamp(3) with time zone not null
account_events.metadata jsonb not null
account_events.hash bytea not null
account_events constraint account_events_hash_check CHECK ((length(hash) = 32))
account_events constraint account_events_pkey PRIMARY KEY (id)
CREATE TRIGGER account_events_append_only BEFORE DELETE OR UPDATE ON public.account_events FOR EACH ROW EXECUTE FUNCTION refuse_audit_change() (always)
CREATE TRIGGER account_events_no_truncate BEFORE TRUNCATE ON public.account_events FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change() (always)
CREATE TRIGGER account_events_number BEFORE INSERT ON public.account_events FOR EACH ROW EXECUTE FUNCTION number_account_event() (always)
grant select on account_events to svc_api
grant insert (client_ip) on account_events to svc_api
grant insert (email) on account_events to svc_api
grant insert (metadata) on account_events to svc_api
grant insert (type) on account_events to svc_api
grant insert (user_agent) on account_events to svc_api
grant insert (user_id) on account_events to svc_api
api_keys.id text not null
api_keys.organization_id text not null
api_keys.name text not null
api_keys.scopes text[] not null
api_keys.digest bytea not null
api_keys.key_prefix text not null
api_keys.created_by text not null
api_keys.created_at timestamp(3) with time zone not null default now()
api_keys.last_used_at timestamp(3) with time zone
api_keys.revoked_at timestamp(3) with time zone
api_keys constraint api_keys_created_by_fkey FOREIGN KEY (created_by) REFERENCES users(user_id)
api_keys constraint api_keys_digest_check CHECK ((length(digest) = 32))
api_keys constraint api_keys_digest_key UNIQUE (digest)
api_keys constraint api_keys_id_check CHECK ((id ~ '^key_[0-9a-z]{20,40}$'::text))
api_keys constraint api_keys_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
api_keys constraint api_keys_pkey PRIMARY KEY (id)
api_keys constraint api_keys_scopes_check CHECK (((cardinality(scopes) > 0) AND (scopes <@ ARRAY['read'::text, 'deploy'::text, 'admin'::text])))
CREATE INDEX api_keys_by_end ON public.api_keys USING btree (revoked_at) WHERE (revoked_at IS NOT NULL)
CREATE INDEX api_keys_by_organization ON public.api_keys USING btree (organization_id, created_at, id) WHERE (revoked_at IS NULL)
grant delete on api_keys to svc_api
grant insert on api_keys to svc_api
grant select on api_keys to svc_api
grant update on api_keys to svc_api
attempts.bucket text not null
attempts.key bytea not null
attempts.hits timestamp with time zone[] not null
attempts.expires_at timestamp with time zone not null
attempts constraint attempts_key_check CHECK ((length(key) = 32))
attempts constraint attempts_pkey PRIMARY KEY (bucket, key)
CREATE INDEX attempts_by_expiry ON public.attempts USING btree (expires_at)
grant delete on attempts to svc_api
grant insert on attempts to svc_api
grant select on attempts to svc_api
grant update on attempts to svc_api
audit_events.organization_id text not null
audit_events.id bigint not null
audit_events.actor text not null
audit_events.action text not null
audit_events.resource_kind text not null
audit_events.resource_id text not null
audit_events.occurred_at timestamp(3) with time zone not null
audit_events.metadata jsonb not null
audit_events.hash bytea not null
audit_events constraint audit_events_hash_check CHECK ((length(hash) = 32))
audit_events constraint audit_events_organization_id_check CHECK ((organization_id <> ''::text))
audit_events constraint audit_events_pkey PRIMARY KEY (organization_id, id)
CREATE TRIGGER audit_events_append_only BEFORE DELETE OR UPDATE ON public.audit_events FOR EACH ROW EXECUTE FUNCTION refuse_audit_change() (always)
CREATE TRIGGER audit_events_no_truncate BEFORE TRUNCATE ON public.audit_events FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change() (always)
CREATE TRIGGER audit_events_number BEFORE INSERT ON public.audit_events FOR EACH ROW EXECUTE FUNCTION number_audit_event() (always)
grant select on audit_events to svc_api
grant insert (action) on audit_events to svc_api
grant insert (actor) on audit_events to svc_api
grant insert (metadata) on audit_events to svc_api
grant insert (organization_id) on audit_events to svc_api
grant insert (resource_id) on audit_events to svc_api
grant insert (resource_kind) on audit_events to svc_api
audit_heads.organization_id text not null
audit_heads.last_id bigint not null
audit_heads.last_hash bytea
audit_heads constraint audit_heads_pkey PRIMARY KEY (organization_id)
grant select on audit_heads to svc_api
bound_store.one_row boolean not null default true
bound_store.identity text not null
bound_store.bound_at timestamp with time zone not null default now()
bound_store constraint bound_store_one_row_check CHECK (one_row)
bound_store constraint bound_store_pkey PRIMARY KEY (one_row)
grant insert on bound_store to svc_api
grant select on bound_store to svc_api
configured_administrator.one_row boolean not null default true
configured_administrator.digest bytea not null
configured_administrator.user_id text not null
configured_administrator.applied_at timestamp(3) with time zone not null default now()
configured_administrator constraint configured_administrator_digest_check CHECK ((length(digest) = 32))
configured_administrator constraint configured_administrator_one_row_check CHECK (one_row)
configured_administrator constraint configured_administrator_pkey PRIMARY KEY (one_row)
configured_administrator constraint configured_administrator_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id)
grant delete on configured_administrator to svc_api
grant insert on configured_administrator to svc_api
grant select on configured_administrator to svc_api
grant update on configured_administrator to svc_api
derivation_root.one_row boolean not null default true
derivation_root.sealed text not null
derivation_root constraint derivation_root_one_row_check CHECK (one_row)
derivation_root constraint derivation_root_pkey PRIMARY KEY (one_row)
grant insert on derivation_root to svc_api
grant select on derivation_root to svc_api
grant update on derivation_root to svc_api
device_requests.device_digest bytea not null
device_requests.user_code_digest bytea not null
device_requests.client_name text not null
device_requests.client_ip text not null
device_requests.client_key text not null
device_requests.scopes text[] not null
device_requests.organization_id text
device_requests.life_seconds integer
device_requests.state text not null default 'pending'::text
device_requests.interval_seconds integer not null
device_requests.polled_at timestamp(3) with time zone
device_requests.created_at timestamp(3) with time zone not null default now()
device_requests.expires_at timestamp(3) with time zone not null
device_requests.decided_by text
device_requests.token_id text
device_requests.granted_scopes text[]
device_requests.granted_organization_id text
device_requests.token_expires_at timestamp(3) with time zone
device_requests.sealed_token bytea
device_requests.told_until timestamp(3) with time zone
device_requests constraint device_requests_check CHECK (((state = ANY (ARRAY['approved'::text, 'redeemed'::text])) = (token_id IS NOT NULL)))
device_requests constraint device_requests_check1 CHECK (((token_id IS NULL) = (granted_scopes IS NULL)))
device_requests constraint device_requests_check2 CHECK (((sealed_token IS NULL) OR ((state = 'redeemed'::text) AND (told_until IS NOT NULL))))
device_requests constraint device_requests_decided_by_fkey FOREIGN KEY (decided_by) REFERENCES users(user_id)
device_requests constraint device_requests_device_digest_check CHECK ((length(device_digest) = 32))
device_requests constraint device_requests_pkey PRIMARY KEY (device_digest)
device_requests constraint device_requests_scopes_check CHECK ((cardinality(scopes) > 0))
device_requests constraint device_requests_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'approved'::text, 'denied'::text, 'redeemed'::text])))
device_requests constraint device_requests_token_id_key UNIQUE (token_id)
device_requests constraint device_requests_user_code_digest_check CHECK ((length(user_code_digest) = 32))
device_requests constraint device_requests_user_code_digest_key UNIQUE (user_code_digest)
CREATE INDEX device_requests_approved ON public.device_requests USING btree (decided_by) WHERE (state = 'approved'::text)
CREATE INDEX device_requests_by_client ON public.device_requests USING btree (client_key, expires_at)
CREATE INDEX device_requests_by_expiry ON public.device_requests USING btree (expires_at)
CREATE INDEX device_requests_told ON public.device_requests USING btree (told_until) WHERE (sealed_token IS NOT NULL)
grant delete on device_requests to svc_api
grant insert on device_requests to svc_api
grant select on device_requests to svc_api
grant update on device_requests to svc_api
environments.id uuid not null default gen_random_uuid()
environments.organization_id text not null
environments.project_id text not null
environments.environment_id text not null
environments.kind text not null
environments.data_mode text not null
environments.region text not null
environments.postgres_major integer not null
environments.ttl_hours integer
environments.expires_at timestamp(3) with time zone
environments.deletion_protection boolean not null default false
environments.deletion_policy text not null
environments.source_environment_id text
environments.namespace text not null
environments.resource_name text not null
environments.uid text
environments.seq bigint not null default 0
environments.phase text not null default 'requested'::text
environments.status jsonb
environments.observed_generation bigint
environments.observed_spec jsonb
environments.created_at timestamp(3) with time zone not null default now()
environments.updated_at timestamp(3) with time zone not null default now()
environments.deleted_at timestamp(3) with time zone
environments.replaced_at timestamp(3) with time zone
environments constraint environments_data_mode_check CHECK ((data_mode = ANY (ARRAY['snapshot'::text, 'sanitized'::text, 'schema_only'::text])))
environments constraint environments_deletion_policy_check CHECK ((deletion_policy = ANY (ARRAY['Retain'::text, 'Delete'::text])))
environments constraint environments_kind_check CHECK ((kind = ANY (ARRAY['production'::text, 'staging'::text, 'preview'::text])))
environments constraint environments_organization_id_project_id_fkey FOREIGN KEY (organization_id, project_id) REFERENCES projects(organization_id, project_id)
environments constraint environments_phase_check CHECK ((phase = ANY (ARRAY['requested'::text, 'provisioning'::text, 'ready'::text, 'suspended'::text, 'updating'::text, 'failed_recoverable'::text, 'deleting'::text, 'deleted'::text])))
environments constraint environments_pkey PRIMARY KEY (id)
environments constraint environments_uid_key UNIQUE (uid)
CREATE INDEX environments_by_age ON public.environments USING btree (organization_id, created_at, id) WHERE (replaced_at IS NULL)
CREATE UNIQUE INDEX environments_current ON public.environments USING btree (organization_id, project_id, environment_id) WHERE (replaced_at IS NULL)
grant insert on environments to svc_api
grant select on environments to svc_api
grant update on environments to svc_api
external_changes.uid text not null
external_changes.generation bigint not null
external_changes.recorded_at timestamp(3) with time zone not null default now()
external_changes constraint external_changes_pkey PRIMARY KEY (uid, generation)
grant insert on external_changes to svc_api
grant select on external_changes to svc_api
idempotency_keys.scope_hash bytea not null
idempotency_keys.key_hash bytea not null
idempotency_keys.fingerprint bytea not null
idempotency_keys.status integer
idempotency_keys.headers jsonb
idempotency_keys.body bytea
idempotency_keys.sealed boolean not null default false
idempotency_keys.subject_id text
idempotency_keys.secret_expires_at timestamp(3) with time zone
idempotency_keys.created_at timestamp(3) with time zone not null default now()
idempotency_keys.expires_at timestamp(3) with time zone not null
idempotency_keys constraint idempotency_keys_pkey PRIMARY KEY (scope_hash, key_hash)
CREATE INDEX idempotency_keys_by_expiry ON public.idempotency_keys USING btree (expires_at)
grant delete on idempotency_keys to svc_api
grant insert on idempotency_keys to svc_api
grant select on idempotency_keys to svc_api
grant update on idempotency_keys to svc_api
intents.id bigint not null generated always as identity
intents.environment_row uuid not null
intents.seq bigint not null
intents.operation_id text
intents.request_id text not null
intents.verb text not null
intents.payload jsonb not null
intents.state text not null default 'pending'::text
intents.attempts integer not null default 0
intents.last_error text
intents.folded boolean not null default false
intents.created_at timestamp(3) with time zone not null default now()
intents.dispatched_at timestamp(3) with time zone
intents.generation bigint
intents.call jsonb
intents.scope_hash bytea
intents.key_hash bytea
intents.answer bytea
intents constraint intents_environment_row_fkey FOREIGN KEY (environment_row) REFERENCES environments(id)
intents constraint intents_environment_row_seq_key UNIQUE (environment_row, seq)
intents constraint intents_operation_id_fkey FOREIGN KEY (operation_id) REFERENCES operations(id)
intents constraint intents_pkey PRIMARY KEY (id)
intents constraint intents_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'dispatched'::text, 'failed'::text, 'cancelled'::text])))
intents constraint intents_verb_check CHECK ((verb = ANY (ARRAY['create'::text, 'suspend'::text, 'resume'::text, 'rotate'::text, 'delete'::text, 'update'::text])))
CREATE INDEX intents_by_key ON public.intents USING btree (scope_hash, key_hash) WHERE (key_hash IS NOT NULL)
CREATE INDEX intents_pending ON public.intents USING btree (id) WHERE (state = 'pending'::text)
grant insert on intents to svc_api
grant select on intents to svc_api
grant update on intents to svc_api
invitations.id text not null
invitations.organization_id text not null
invitations.email text not null
invitations.role text not null
invitations.invited_by text not null
invitations.token_digest bytea not null
invitations.by_mail boolean not null
invitations.created_at timestamp(3) with time zone not null default now()
invitations.expires_at timestamp(3) with time zone not null
invitations constraint invitations_email_check CHECK ((email = lower(email)))
invitations constraint invitations_id_check CHECK ((id ~ '^inv_[0-9a-z]{20,40}$'::text))
invitations constraint invitations_invited_by_fkey FOREIGN KEY (invited_by) REFERENCES users(user_id)
invitations constraint invitations_organization_id_email_key UNIQUE (organization_id, email)
invitations constraint invitations_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
invitations constraint invitations_pkey PRIMARY KEY (id)
invitations constraint invitations_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'developer'::text, 'admin'::text, 'owner'::text])))
invitations constraint invitations_token_digest_check CHECK ((length(token_digest) = 32))
invitations constraint invitations_token_digest_key UNIQUE (token_digest)
CREATE INDEX invitations_by_expiry ON public.invitations USING btree (expires_at)
CREATE INDEX invitations_by_organization ON public.invitations USING btree (organization_id, created_at, id)
grant delete on invitations to svc_api
grant insert on invitations to svc_api
grant select on invitations to svc_api
grant update on invitations to svc_api
leases.name text not null
leases.holder text not null
leases.term bigint not null
leases.expires_at timestamp(3) with time zone not null
leases constraint leases_pkey PRIMARY KEY (name)
grant insert on leases to svc_api
grant select on leases to svc_api
grant update on leases to svc_api
magic_links.email text not null
magic_links.token_digest bytea not null
magic_links.code_digest bytea not null
magic_links.guesses integer not null default 0
magic_links.created_at timestamp(3) with time zone not null default now()
magic_links.expires_at timestamp(3) with time zone not null
magic_links constraint magic_links_code_digest_check CHECK ((length(code_digest) = 32))
magic_links constraint magic_links_email_check CHECK ((email = lower(email)))
magic_links constraint magic_links_pkey PRIMARY KEY (email)
magic_links constraint magic_links_token_digest_check CHECK ((length(token_digest) = 32))
magic_links constraint magic_links_token_digest_key UNIQUE (token_digest)
CREATE INDEX magic_links_by_expiry ON public.magic_links USING btree (expires_at)
grant delete on magic_links to svc_api
grant insert on magic_links to svc_api
grant select on magic_links to svc_api
grant update on magic_links to svc_api
mail_outbox.id text not null
mail_outbox.kind text not null
mail_outbox.about text not null
mail_outbox.recipient text not null
mail_outbox.parameters jsonb not null
mail_outbox.sealed_secret text
mail_outbox.state text not null
mail_outbox.attempts integer not null default 0
mail_outbox.next_attempt_at timestamp(3) with time zone not null
mail_outbox.expires_at timestamp(3) with time zone not null
mail_outbox.lease text
mail_outbox.leased_until timestamp(3) with time zone
mail_outbox.last_error text
mail_outbox.created_at timestamp(3) with time zone not null default now()
mail_outbox.settled_at timestamp(3) with time zone
mail_outbox constraint mail_outbox_check CHECK (((state = 'waiting'::text) OR (sealed_secret IS NULL)))
mail_outbox constraint mail_outbox_check1 CHECK (((state = 'waiting'::text) OR (lease IS NULL)))
mail_outbox constraint mail_outbox_id_check CHECK ((id ~ '^let_[0-9a-z]{20,40}$'::text))
mail_outbox constraint mail_outbox_kind_check CHECK ((kind = ANY (ARRAY['magic_link'::text, 'magic_link_notice'::text, 'password_reset'::text, 'invitation'::text])))
mail_outbox constraint mail_outbox_pkey PRIMARY KEY (id)
mail_outbox constraint mail_outbox_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'sent'::text, 'given_up'::text, 'withdrawn'::text, 'unwanted'::text])))
CREATE INDEX mail_outbox_about ON public.mail_outbox USING btree (kind, about) WHERE (state = 'waiting'::text)
CREATE INDEX mail_outbox_by_age ON public.mail_outbox USING btree (created_at)
CREATE INDEX mail_outbox_waiting ON public.mail_outbox USING btree (next_attempt_at) WHERE (state = 'waiting'::text)
grant delete on mail_outbox to svc_api
grant insert on mail_outbox to svc_api
grant select on mail_outbox to svc_api
grant update on mail_outbox to svc_api
memberships.organization_id text not null
memberships.user_id text not null
memberships.role text not null
memberships.created_at timestamp(3) with time zone not null default now()
memberships constraint memberships_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
memberships constraint memberships_pkey PRIMARY KEY (organization_id, user_id)
memberships constraint memberships_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'developer'::text, 'admin'::text, 'owner'::text])))
memberships constraint memberships_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id)
CREATE INDEX memberships_by_user ON public.memberships USING btree (user_id)
grant delete on memberships to svc_api
grant insert on memberships to svc_api
grant select on memberships to svc_api
grant update on memberships to svc_api
mfa_tokens.digest bytea not null
mfa_tokens.user_id text not null
mfa_tokens.method text not null
mfa_tokens.tries integer not null default 0
mfa_tokens.expires_at timestamp(3) with time zone not null
mfa_tokens constraint mfa_tokens_digest_check CHECK ((length(digest) = 32))
mfa_tokens constraint mfa_tokens_method_check CHECK ((method = ANY (ARRAY['password'::text, 'email_link'::text])))
mfa_tokens constraint mfa_tokens_pkey PRIMARY KEY (digest)
mfa_tokens constraint mfa_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id)
CREATE INDEX mfa_tokens_by_expiry ON public.mfa_tokens USING btree (expires_at)
CREATE INDEX mfa_tokens_by_user ON public.mfa_tokens USING btree (user_id)
grant delete on mfa_tokens to svc_api
grant insert on mfa_tokens to svc_api
grant select on mfa_tokens to svc_api
grant update on mfa_tokens to svc_api
operations.id text not null
operations.kind text not null
operations.state text not null default 'pending'::text
operations.organization_id text not null
operations.project_id text not null
operations.environment_id text not null
operations.environment_row uuid not null
operations.seq bigint not null
operations.actor text not null
operations.request_id text not null
operations.attempt_count integer not null default 0
operations.result jsonb
operations.error text
operations.deadline_at timestamp(3) with time zone
operations.created_at timestamp(3) with time zone not null default now()
operations.updated_at timestamp(3) with time zone not null default now()
operations constraint operations_check CHECK (((state = 'failed'::text) = (error IS NOT NULL)))
operations constraint operations_environment_row_fkey FOREIGN KEY (environment_row) REFERENCES environments(id)
operations constraint operations_id_check CHECK ((id ~ '^op_[0-9a-z]{20,40}$'::text))
operations constraint operations_kind_check CHECK ((kind = ANY (ARRAY['create_environment'::text, 'delete_environment'::text, 'suspend_environment'::text, 'resume_environment'::text, 'rotate_credentials'::text, 'run_migrations'::text, 'import'::text])))
operations constraint operations_pkey PRIMARY KEY (id)
operations constraint operations_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'running'::text, 'succeeded'::text, 'failed'::text])))
CREATE INDEX operations_by_environment ON public.operations USING btree (environment_row, seq)
CREATE INDEX operations_by_path ON public.operations USING btree (organization_id, project_id, environment_id, created_at DESC, id DESC)
CREATE INDEX operations_open ON public.operations USING btree (deadline_at) WHERE (state = ANY (ARRAY['pending'::text, 'running'::text]))
CREATE UNIQUE INDEX operations_one_open ON public.operations USING btree (environment_row) WHERE (state = ANY (ARRAY['pending'::text, 'running'::text]))
grant insert on operations to svc_api
grant select on operations to svc_api
grant update on operations to svc_api
organization_sso.organization_id text not null
organization_sso.revision text not null
organization_sso.issuer text not null
organization_sso.client_id text not null
organization_sso.sealed_secret text not null
organization_sso.default_role text
organization_sso.created_at timestamp(3) with time zone not null default now()
organization_sso.updated_at timestamp(3) with time zone not null default now()
organization_sso constraint organization_sso_default_role_check CHECK ((default_role = ANY (ARRAY['viewer'::text, 'developer'::text, 'admin'::text])))
organization_sso constraint organization_sso_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
organization_sso constraint organization_sso_pkey PRIMARY KEY (organization_id)
organization_sso constraint organization_sso_revision_key UNIQUE (revision)
grant delete on organization_sso to svc_api
grant insert on organization_sso to svc_api
grant select on organization_sso to svc_api
grant update on organization_sso to svc_api
organizations.organization_id text not null
organizations.name text not null
organizations.created_at timestamp(3) with time zone not null default now()
organizations.updated_at timestamp(3) with time zone not null default now()
organizations constraint organizations_pkey PRIMARY KEY (organization_id)
grant insert on organizations to svc_api
grant select on organizations to svc_api
grant update on organizations to svc_api
password_resets.user_id text not null
password_resets.digest bytea not null
password_resets.token_prefix text not null
password_resets.issued_by text
password_resets.created_at timestamp(3) with time zone not null default now()
password_resets.expires_at timestamp(3) with time zone not null
password_resets constraint password_resets_digest_check CHECK ((length(digest) = 32))
password_resets constraint password_resets_digest_key UNIQUE (digest)
password_resets constraint password_resets_issued_by_fkey FOREIGN KEY (issued_by) REFERENCES users(user_id)
password_resets constraint password_resets_pkey PRIMARY KEY (user_id)
password_resets constraint password_resets_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id)
grant delete on password_resets to svc_api
grant insert on password_resets to svc_api
grant select on password_resets to svc_api
grant update on password_resets to svc_api
passwords.user_id text not null
passwords.hash text not null
passwords.changed_at timestamp(3) with time zone not null default now()
passwords constraint passwords_pkey PRIMARY KEY (user_id)
passwords constraint passwords_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id)
grant delete on passwords to svc_api
grant insert on passwords to svc_api
grant select on passwords to svc_api
grant update on passwords to svc_api
projects.organization_id text not null
projects.project_id text not null
projects.region text not null
projects.postgres_major integer not null
projects.protect_production boolean not null default false
projects.namespace text not null
projects.created_at timestamp(3) with time zone not null default now()
projects.updated_at timestamp(3) with time zone not null default now()
projects.deleted_at timestamp(3) with time zone
projects.remove_namespace boolean not null default false
projects constraint projects_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
projects constraint projects_pkey PRIMARY KEY (organization_id, project_id)
projects constraint projects_postgres_major_check CHECK ((postgres_major = 17))
CREATE INDEX projects_leaving ON public.projects USING btree (deleted_at) WHERE remove_namespace
grant insert on projects to svc_api
grant select on projects to svc_api
grant update on projects to svc_api
recovery_codes.user_id text not null
recovery_codes.digest bytea not null
recovery_codes constraint recovery_codes_digest_check CHECK ((length(digest) = 32))
recovery_codes constraint recovery_codes_pkey PRIMARY KEY (user_id, digest)
recovery_codes constraint recovery_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id)
grant delete on recovery_codes to svc_api
grant insert on recovery_codes to svc_api
grant select on recovery_codes to svc_api
grant update on recovery_codes to svc_api
schema_migrations.number integer not null
schema_migrations.name text not null
schema_migrations.sha256 text not null
schema_migrations.applied_at timestamp with time zone not null default now()
schema_migrations constraint schema_migrations_name_key UNIQUE (name)
schema_migrations constraint schema_migrations_pkey PRIMARY KEY (number)
grant select on schema_migrations to svc_api
seal_canary.one_row boolean not null default true
seal_canary.sealed text not null
seal_canary constraint seal_canary_one_row_check CHECK (one_row)
seal_canary constraint seal_canary_pkey PRIMARY KEY (one_row)
grant insert on seal_canary to svc_api
grant select on seal_canary to svc_api
grant update on seal_canary to svc_api
second_factors.user_id text not null
second_factors.sealed_secret text not null
second_factors.version bigint not null
second_factors.totp_last_step bigint not null default 0
second_factors.enabled_at timestamp(3) with time zone
second_factors.pending_until timestamp(3) with time zone
second_factors constraint second_factors_check CHECK (((enabled_at IS NULL) <> (pending_until IS NULL)))
second_factors constraint second_factors_pkey PRIMARY KEY (user_id)
second_factors constraint second_factors_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id)
grant delete on second_factors to svc_api
grant insert on second_factors to svc_api
grant select on second_factors to svc_api
grant update on second_factors to svc_api
session_tokens.digest bytea not null
session_tokens.session_id text not null
session_tokens.generation integer not null
session_tokens.replaced_at timestamp(3) with time zone
session_tokens constraint session_tokens_digest_check CHECK ((length(digest) = 32))
session_tokens constraint session_tokens_pkey PRIMARY KEY (digest)
session_tokens constraint session_tokens_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id) ON DELETE CASCADE
session_tokens constraint session_tokens_session_id_generation_key UNIQUE (session_id, generation)
grant delete on session_tokens to svc_api
grant insert on session_tokens to svc_api
grant select on session_tokens to svc_api
grant update on session_tokens to svc_api
sessions.id text not null
sessions.user_id text not null
sessions.method text not null
sessions.organization_id text
sessions.token_prefix text not null
sessions.client_ip text not null
sessions.user_agent text
sessions.generation integer not null default 0
sessions.created_at timestamp(3) with time zone not null default now()
sessions.last_used_at timestamp(3) with time zone not null default now()
sessions.rotated_at timestamp(3) with time zone not null default now()
sessions.authenticated_at timestamp(3) with time zone not null default now()
sessions.ends_at timestamp(3) with time zone
sessions constraint sessions_id_check CHECK ((id ~ '^ses_[0-9a-z]{20,40}$'::text))
sessions constraint sessions_method_check CHECK ((method = ANY (ARRAY['password'::text, 'email_link'::text, 'setup'::text, 'sso'::text])))
sessions constraint sessions_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
sessions constraint sessions_pkey PRIMARY KEY (id)
sessions constraint sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id)
CREATE INDEX sessions_by_age ON public.sessions USING btree (created_at)
CREATE INDEX sessions_by_organization ON public.sessions USING btree (organization_id) WHERE (organization_id IS NOT NULL)
CREATE INDEX sessions_by_user ON public.sessions USING btree (user_id, created_at DESC, id DESC)
grant delete on sessions to svc_api
grant insert on sessions to svc_api
grant select on sessions to svc_api
grant update on sessions to svc_api
setup_tokens.one_row boolean not null default true
setup_tokens.digest bytea not null
setup_tokens.email text
setup_tokens.created_at timestamp(3) with time zone not null default now()
setup_tokens constraint setup_tokens_digest_check CHECK ((length(digest) = 32))
setup_tokens constraint setup_tokens_one_row_check CHECK (one_row)
setup_tokens constraint setup_tokens_pkey PRIMARY KEY (one_row)
grant delete on setup_tokens to svc_api
grant insert on setup_tokens to svc_api
grant select on setup_tokens to svc_api
grant update on setup_tokens to svc_api
sign_in_failures.account_key bytea not null
sign_in_failures.failed timestamp with time zone[] not null
sign_in_failures.locked_at timestamp with time zone
sign_in_failures.locked_until timestamp with time zone
sign_in_failures.expires_at timestamp with time zone not null
sign_in_failures constraint sign_in_failures_account_key_check CHECK ((length(account_key) = 32))
sign_in_failures constraint sign_in_failures_pkey PRIMARY KEY (account_key)
CREATE INDEX sign_in_failures_by_expiry ON public.sign_in_failures USING btree (expires_at)
grant delete on sign_in_failures to svc_api
grant insert on sign_in_failures to svc_api
grant select on sign_in_failures to svc_api
grant update on sign_in_failures to svc_api
sso_flows.state_digest bytea not null
sso_flows.flow_digest bytea not null
sso_flows.organization_id text not null
sso_flows.revision text not null
sso_flows.reauthenticates boolean not null
sso_flows.expires_at timestamp(3) with time zone not null
sso_flows constraint sso_flows_flow_digest_check CHECK ((length(flow_digest) = 32))
sso_flows constraint sso_flows_pkey PRIMARY KEY (state_digest)
sso_flows constraint sso_flows_state_digest_check CHECK ((length(state_digest) = 32))
CREATE INDEX sso_flows_by_expiry ON public.sso_flows USING btree (expires_at)
grant delete on sso_flows to svc_api
grant insert on sso_flows to svc_api
grant select on sso_flows to svc_api
grant update on sso_flows to svc_api
token_events.id bigint not null generated always as identity
token_events.token_id text not null
token_events.at timestamp(3) with time zone not null
token_events.method text not null
token_events.path text not null
token_events.status integer not null
token_events.client_ip text not null
token_events constraint token_events_pkey PRIMARY KEY (id)
token_events constraint token_events_token_id_fkey FOREIGN KEY (token_id) REFERENCES tokens(id) ON DELETE CASCADE
CREATE INDEX token_events_by_token ON public.token_events USING btree (token_id, at DESC, id DESC)
grant delete on token_events to svc_api
grant insert on token_events to svc_api
grant select on token_events to svc_api
tokens.id text not null
tokens.user_id text not null
tokens.kind text not null
tokens.name text not null
tokens.digest bytea not null
tokens.token_prefix text not null
tokens.scopes text[]
tokens.organization_id text
tokens.created_at timestamp(3) with time zone not null default now()
tokens.last_used_at timestamp(3) with time zone
tokens.expires_at timestamp(3) with time zone
tokens.revoked_at timestamp(3) with time zone
tokens constraint tokens_agents_have_scopes CHECK (((kind = 'agent'::text) = (scopes IS NOT NULL)))
tokens constraint tokens_digest_check CHECK ((length(digest) = 32))
tokens constraint tokens_digest_key UNIQUE (digest)
tokens constraint tokens_id_check CHECK ((id ~ '^tok_[0-9a-z]{20,40}$'::text))
tokens constraint tokens_kind_check CHECK ((kind = ANY (ARRAY['personal'::text, 'agent'::text])))
tokens constraint tokens_pkey PRIMARY KEY (id)
tokens constraint tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id)
CREATE INDEX tokens_bound ON public.tokens USING btree (organization_id, user_id) WHERE ((organization_id IS NOT NULL) AND (revoked_at IS NULL))
CREATE INDEX tokens_by_end ON public.tokens USING btree (LEAST(revoked_at, expires_at)) WHERE (LEAST(revoked_at, expires_at) IS NOT NULL)
CREATE INDEX tokens_by_user ON public.tokens USING btree (user_id, created_at DESC, id DESC)
grant delete on tokens to svc_api
grant insert on tokens to svc_api
grant select on tokens to svc_api
grant update on tokens to svc_api
users.user_id text not null
users.email text
users.name text not null default ''::text
users.is_operator boolean not null default false
users.disabled_at timestamp(3) with time zone
users.created_at timestamp(3) with time zone not null default now()
users.email_verified_at timestamp(3) with time zone
users.issuer text
users.subject text
users.actor text
users.sso_organization_id text
users.sso_issuer text
users.sso_subject text
users constraint users_email_check CHECK ((email = lower(email)))
users constraint users_email_key UNIQUE (email)
users constraint users_identity CHECK (((issuer IS NULL) = (subject IS NULL)))
users constraint users_of_sso_alone CHECK (((sso_organization_id IS NULL) OR ((email IS NULL) AND (issuer IS NULL) AND (NOT is_operator))))
users constraint users_pkey PRIMARY KEY (user_id)
users constraint users_sso_identity CHECK ((((sso_organization_id IS NULL) = (sso_issuer IS NULL)) AND ((sso_organization_id IS NULL) = (sso_subject IS NULL))))
users constraint users_sso_organization_id_fkey FOREIGN KEY (sso_organization_id) REFERENCES organizations(organization_id)
users constraint users_user_id_check CHECK ((user_id ~ '^usr_[0-9a-z]{20,40}$'::text))
CREATE UNIQUE INDEX users_by_identity ON public.users USING btree (issuer, subject) WHERE (issuer IS NOT NULL)
CREATE UNIQUE INDEX users_by_name_without_address ON public.users USING btree (name) WHERE ((email IS NULL) AND (issuer IS NULL) AND (sso_organization_id IS NULL))
CREATE UNIQUE INDEX users_by_sso_identity ON public.users USING btree (sso_organization_id, sso_issuer, sso_subject) WHERE (sso_organization_id IS NOT NULL)
grant insert on users to svc_api
grant select on users to svc_api
grant update on users to svc_api
CREATE OR REPLACE FUNCTION public.account_event_hash(previous bytea, e account_events)
 RETURNS bytea
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  return sha256(previous || convert_to(jsonb_build_array('', e.id, e.type, e.user_id, e.email, e.client_ip, e.user_agent,
    (extract(epoch from e.occurred_at) * 1000)::bigint, e.metadata)::text, 'UTF8'));
end $function$
 -- execute: public
CREATE OR REPLACE FUNCTION public.audit_event_hash(previous bytea, e audit_events)
 RETURNS bytea
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  return sha256(previous || convert_to(jsonb_build_array(e.organization_id, e.id, e.actor, e.action, e.resource_kind, e.resource_id,
    (extract(epoch from e.occurred_at) * 1000)::bigint, e.metadata)::text, 'UTF8'));
end $function$
 -- execute: public
CREATE OR REPLACE FUNCTION public.first_audit_hash(organization_id text)
 RETURNS bytea
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$ select sha256(convert_to('svc audit ' || organization_id, 'UTF8')) $function$
 -- execute: public
CREATE OR REPLACE FUNCTION public.next_audit_link(head_id text, OUT id bigint, OUT previous bytea)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  insert into public.audit_heads as head (organization_id, last_id) values (head_id, 1)
    on conflict (organization_id) do update set last_id = head.last_id + 1
    returning head.last_id, coalesce(head.last_hash, public.first_audit_hash(head_id)) into id, previous;
end $function$
 -- execute: nobody
CREATE OR REPLACE FUNCTION public.number_account_event()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  link record;
begin
  if new.id is not null or new.occurred_at is not null or new.hash is not null then
    raise exception 'Number, time and hash of an account event cannot be given' using errcode = 'insufficient_privilege';
  end if;
  link := public.next_audit_link('');
  new.id := link.id;
  new.occurred_at := clock_timestamp();
  new.hash := public.account_event_hash(link.previous, new);
  update public.audit_heads set last_hash = new.hash where organization_id = '';
  return new;
end $function$
 -- execute: public
CREATE OR REPLACE FUNCTION public.number_audit_event()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  link record;
begin
  if new.id is not null or new.occurred_at is not null or new.hash is not null then
    raise exception 'Number, time and hash of an audit event cannot be given' using errcode = 'insufficient_privilege';
  end if;
  link := public.next_audit_link(new.organization_id);
  new.id := link.id;
  new.occurred_at := clock_timestamp();
  new.hash := public.audit_event_hash(link.previous, new);
  update public.audit_heads set last_hash = new.hash where organization_id = new.organization_id;
  return new;
end $function$
 -- execute: public
CREATE OR REPLACE FUNCTION public.refuse_audit_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'Audit events cannot be changed or removed' using errcode = 'insufficient_privilege';
end $function$
 -- execute: public
