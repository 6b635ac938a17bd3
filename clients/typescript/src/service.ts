/** The client of a service: tools, skills, documents and knowledge. */

import {
  type AddRuleQuery,
  type ApproveRequest,
  type AssignRequest,
  type AuditShown,
  type ChangeCompared,
  type ChangeShown,
  type DeleteRuleQuery,
  type GapsShown,
  type GetChunkQuery,
  type HealthShown,
  type ItemSkills,
  type ItemToImport,
  type JobShown,
  type LibraryChunk,
  type LibrarySearchAnswer,
  type LibrarySearchRequest,
  type LibrarySource,
  type ListChangesQuery,
  type ListedTool,
  type ListGapsQuery,
  type ListLibrarySourcesQuery,
  type ListRulesQuery,
  type ListSkillsQuery,
  type ListSuggestionsQuery,
  type ListToolSearchesQuery,
  type ListToolsQuery,
  type MergeRequest,
  type NewRule,
  type NewSkill,
  OPERATIONS,
  type Operations,
  type ReleaseSkillsOfToolQuery,
  type ReviewRequest,
  type RuleChanges,
  type RuleShown,
  type SearchShown,
  type SkillChanges,
  type SkillFields,
  type SkillSearchAnswer,
  type SkillSearchRequest,
  type SkillShown,
  type SkillWritten,
  type SuggestionDecided,
  type SuggestionEvidence,
  type SuggestionShown,
  type TenantShown,
  type ToolOfSkill,
  type ToolSearchAnswer,
  type ToolSearchRequest,
  type ToolShown,
  type ToolSource,
} from "./api/service.ts";
import { type ClientOptions, Connection, type RequestOptions } from "./connection.ts";
import { Documents } from "./documents.ts";
import { type ListOptions, Operator, type Pages } from "./resource.ts";

type Paging = ListOptions<{ cursor?: string }>;

/** Requests to a running service: `toolscript serve`. */
export class Client {
  readonly tools: Tools;
  readonly skills: Skills;
  readonly documents: Documents;
  readonly knowledge: Knowledge;
  readonly jobs: Jobs;
  readonly sources: Sources;
  readonly curation: Curation;
  readonly searches: Searches;
  readonly changes: Changes;
  readonly suggestions: Suggestions;
  readonly tenants: Tenants;
  readonly audit: Audit;
  readonly #operator: Operator<Operations>;

  constructor(options: ClientOptions) {
    const operator = new Operator<Operations>(new Connection(options), OPERATIONS);
    this.#operator = operator;
    this.tools = new Tools(operator);
    this.skills = new Skills(operator);
    this.documents = new Documents(operator);
    this.knowledge = new Knowledge(operator);
    this.jobs = new Jobs(operator);
    this.sources = new Sources(operator);
    this.curation = new Curation(operator);
    this.searches = new Searches(operator);
    this.changes = new Changes(operator);
    this.suggestions = new Suggestions(operator);
    this.tenants = new Tenants(operator);
    this.audit = new Audit(operator);
  }

  /** Whether the service can answer searches, and which of its parts are up. */
  async health(options?: RequestOptions): Promise<HealthShown> {
    const exchange = { ...this.#operator.exchange("readyz", {}), alsoAnswers: 503 };
    return (await this.#operator.connection.json(exchange, options)) as HealthShown;
  }
}

class Resource {
  protected readonly operator: Operator<Operations>;

  constructor(operator: Operator<Operations>) {
    this.operator = operator;
  }
}

/** Tools, prompts and resources of the catalog. */
export class Tools extends Resource {
  async search(
    query: string,
    search: Omit<ToolSearchRequest, "query"> = {},
    options?: RequestOptions,
  ): Promise<ToolSearchAnswer> {
    return await this.operator.send("search_tools", { body: { query, ...search } }, options);
  }

  list(list: ListOptions<ListToolsQuery> = {}, options?: RequestOptions): Pages<ListedTool> {
    return this.operator.list("list_tools", list, options);
  }

  async get(id: number, options?: RequestOptions): Promise<ToolShown> {
    return await this.operator.send("get_tool", { path: { tool_id: id } }, options);
  }

  async delete(id: number, options?: RequestOptions): Promise<void> {
    await this.operator.send("delete_tool", { path: { tool_id: id } }, options);
  }

  async getSkills(id: number, options?: RequestOptions): Promise<ItemSkills> {
    return await this.operator.send("get_skills_of_tool", { path: { tool_id: id } }, options);
  }

  /** Set the skills by hand: no classifier changes them. */
  async setSkills(id: number, body: AssignRequest, options?: RequestOptions): Promise<ItemSkills> {
    return await this.operator.send("set_skills_of_tool", { path: { tool_id: id }, body }, options);
  }

  /** Return the tool to the classifier. */
  async releaseSkills(id: number, query: ReleaseSkillsOfToolQuery, options?: RequestOptions): Promise<ItemSkills> {
    return await this.operator.send("release_skills_of_tool", { path: { tool_id: id }, query }, options);
  }
}

/** The categories of tools that route a search. */
export class Skills extends Resource {
  async search(
    query: string,
    search: Omit<SkillSearchRequest, "query"> = {},
    options?: RequestOptions,
  ): Promise<SkillSearchAnswer> {
    return await this.operator.send("search_skills", { body: { query, ...search } }, options);
  }

  list(list: ListOptions<ListSkillsQuery> = {}, options?: RequestOptions): Pages<SkillShown> {
    return this.operator.list("list_skills", list, options);
  }

  async get(id: string, options?: RequestOptions): Promise<SkillShown> {
    return await this.operator.send("get_skill", { path: { skill_id: id } }, options);
  }

  async add(body: NewSkill, options?: RequestOptions): Promise<SkillWritten> {
    return await this.operator.send("add_skill", { body }, options);
  }

  async replace(id: string, body: SkillFields, options?: RequestOptions): Promise<SkillWritten> {
    return await this.operator.send("replace_skill", { path: { skill_id: id }, body }, options);
  }

  /** Change some fields of a skill, or deactivate it. */
  async change(id: string, body: SkillChanges, options?: RequestOptions): Promise<SkillWritten> {
    return await this.operator.send("change_skill", { path: { skill_id: id }, body }, options);
  }

  listTools(id: string, list: Paging = {}, options?: RequestOptions): Pages<ToolOfSkill> {
    return this.operator.list("list_tools_of_skill", list, options, { skill_id: id });
  }
}

/** A library of chunks and extractions, each with its source. */
export class Knowledge extends Resource {
  async search(
    query: string,
    search: Omit<LibrarySearchRequest, "query"> = {},
    options?: RequestOptions,
  ): Promise<LibrarySearchAnswer> {
    return await this.operator.send("search_library", { body: { query, ...search } }, options);
  }

  listSources(list: ListOptions<ListLibrarySourcesQuery> = {}, options?: RequestOptions): Pages<LibrarySource> {
    return this.operator.list("list_library_sources", list, options);
  }

  async getSource(id: string, options?: RequestOptions): Promise<LibrarySource> {
    return await this.operator.send("get_library_source", { path: { source_id: id } }, options);
  }

  /** Return a chunk with its neighbours. */
  async getChunk(id: string, query: GetChunkQuery = {}, options?: RequestOptions): Promise<LibraryChunk> {
    return await this.operator.send("get_chunk", { path: { chunk_id: id }, query }, options);
  }
}

/** Imports and syncs that run in the background. */
export class Jobs extends Resource {
  /** Import items; `prune` removes those of the source that are not among them. */
  async startImport(
    source: string,
    items: ItemToImport[],
    how: { prune?: boolean } = {},
    options?: RequestOptions,
  ): Promise<JobShown> {
    return await this.operator.send("start_job", { body: { source, items, ...how } }, options);
  }

  /** Ask MCP servers of the service's config file for their tools; without names, all of them. */
  async startSync(servers: string[] = [], options?: RequestOptions): Promise<JobShown> {
    return await this.operator.send("start_job", { body: { servers } }, options);
  }

  list(list: Paging = {}, options?: RequestOptions): Pages<JobShown> {
    return this.operator.list("list_jobs", list, options);
  }

  async get(id: number, options?: RequestOptions): Promise<JobShown> {
    return await this.operator.send("get_job", { path: { job_id: id } }, options);
  }
}

/** Where tools come from. */
export class Sources extends Resource {
  list(list: Paging = {}, options?: RequestOptions): Pages<ToolSource> {
    return this.operator.list("list_tool_sources", list, options);
  }

  async get(name: string, options?: RequestOptions): Promise<ToolSource> {
    return await this.operator.send("get_tool_source", { path: { name } }, options);
  }

  /** Start a job that deletes the source with all of its tools. */
  async delete(name: string, options?: RequestOptions): Promise<JobShown> {
    return await this.operator.send("delete_tool_source", { path: { name } }, options);
  }
}

/** Rules of people: which tool comes first or never for a request, and what words mean. */
export class Curation extends Resource {
  list(list: ListOptions<ListRulesQuery> = {}, options?: RequestOptions): Pages<RuleShown> {
    return this.operator.list("list_rules", list, options);
  }

  async get(id: number, options?: RequestOptions): Promise<RuleShown> {
    return await this.operator.send("get_rule", { path: { rule_id: id } }, options);
  }

  async add(body: NewRule, query: AddRuleQuery = {}, options?: RequestOptions): Promise<RuleShown> {
    return await this.operator.send("add_rule", { body, query }, options);
  }

  async change(id: number, body: RuleChanges, options?: RequestOptions): Promise<RuleShown> {
    return await this.operator.send("change_rule", { path: { rule_id: id }, body }, options);
  }

  async delete(id: number, query: DeleteRuleQuery = {}, options?: RequestOptions): Promise<void> {
    await this.operator.send("delete_rule", { path: { rule_id: id }, query }, options);
  }
}

/** The log of tool searches, where the service keeps one. */
export class Searches extends Resource {
  list(list: ListOptions<ListToolSearchesQuery> = {}, options?: RequestOptions): Pages<SearchShown> {
    return this.operator.list("list_tool_searches", list, options);
  }

  /** The most frequent requests without a good match. */
  async gaps(query: ListGapsQuery = {}, options?: RequestOptions): Promise<GapsShown> {
    return await this.operator.send("list_gaps", { query }, options);
  }
}

/** Definitions of tools that changed after they were first seen. */
export class Changes extends Resource {
  list(list: ListOptions<ListChangesQuery> = {}, options?: RequestOptions): Pages<ChangeShown> {
    return this.operator.list("list_changes", list, options);
  }

  async get(id: number, options?: RequestOptions): Promise<ChangeCompared> {
    return await this.operator.send("get_change", { path: { change_id: id } }, options);
  }

  async approve(id: number, body: ReviewRequest, options?: RequestOptions): Promise<ChangeShown> {
    return await this.operator.send("approve_change", { path: { change_id: id }, body }, options);
  }

  async reject(id: number, body: ReviewRequest, options?: RequestOptions): Promise<ChangeShown> {
    return await this.operator.send("reject_change", { path: { change_id: id }, body }, options);
  }
}

/** Skills that a classifier found missing, for people to decide. */
export class Suggestions extends Resource {
  list(list: ListOptions<ListSuggestionsQuery> = {}, options?: RequestOptions): Pages<SuggestionShown> {
    return this.operator.list("list_suggestions", list, options);
  }

  /** Return a suggestion with a page of the tools that request it. */
  async get(id: number, page: Paging = {}, options?: RequestOptions): Promise<SuggestionEvidence> {
    const { page_size: limit, ...rest } = page;
    const query = limit === undefined ? rest : { ...rest, limit };
    return await this.operator.send("get_suggestion", { path: { suggestion_id: id }, query }, options);
  }

  async approve(id: number, body: ApproveRequest, options?: RequestOptions): Promise<SuggestionDecided> {
    return await this.operator.send("approve_suggestion", { path: { suggestion_id: id }, body }, options);
  }

  async reject(id: number, body: ReviewRequest, options?: RequestOptions): Promise<SuggestionShown> {
    return await this.operator.send("reject_suggestion", { path: { suggestion_id: id }, body }, options);
  }

  async merge(id: number, body: MergeRequest, options?: RequestOptions): Promise<SuggestionShown> {
    return await this.operator.send("merge_suggestion", { path: { suggestion_id: id }, body }, options);
  }

  /** Undo an approved proposal: its tools get back the skills that they had. */
  async undo(id: number, body: ReviewRequest, options?: RequestOptions): Promise<SuggestionDecided> {
    return await this.operator.send("undo_suggestion", { path: { suggestion_id: id }, body }, options);
  }
}

/** Tenants that have documents. */
export class Tenants extends Resource {
  list(list: Paging = {}, options?: RequestOptions): Pages<TenantShown> {
    return this.operator.list("list_tenants", list, options);
  }

  async get(name: string, options?: RequestOptions): Promise<TenantShown> {
    return await this.operator.send("get_tenant", { path: { tenant_name: name } }, options);
  }
}

/** Who decided what. */
export class Audit extends Resource {
  list(list: Paging = {}, options?: RequestOptions): Pages<AuditShown> {
    return this.operator.list("list_audit", list, options);
  }
}
