//! The pipeline, natively and as a module: one test for both.

use example_pipeline::{Pipeline, PipelineSpec, PipelineStatus, pipeline};
use horchestra_flight::testing::{Evaluation, FakeCluster};
use horchestra_flight::{Condition, Error, document};
use k8s_openapi::api::batch::v1::Job;
use kube_core::CustomResourceExt;

#[path = "../../airway.rs"]
mod airway;
#[path = "../../module.rs"]
mod module;

fn resource() -> Pipeline {
    Pipeline::new("p", PipelineSpec { image: "busybox".into(), ..PipelineSpec::default() })
}

type Call<'a> = &'a dyn Fn(&FakeCluster, &Pipeline) -> Result<Evaluation, Error>;

/// Runs the same test on the function and on the module.
fn both(test: impl Fn(Call<'_>)) {
    test(&|cluster, resource| cluster.run_blocking(pipeline, resource));
    let module = module::module("pipeline.wasm");
    test(&|cluster, resource| cluster.run_module(&*module, resource));
}

#[test]
fn one_job_after_the_other() {
    both(|call| {
        let mut cluster = FakeCluster::new();
        let mut expected = Vec::new();
        for (step, name) in ["Job.batch p-one", "Job.batch p-two", "Job.batch p-three"]
            .iter()
            .zip(["p-one", "p-two", "p-three"])
        {
            expected.push(*step);
            // Started, and then still running: the same answer.
            for _ in 0..2 {
                let answer = call(&cluster, &resource()).unwrap();
                answer.assert_wants_exactly(&expected);
                answer.assert_message(&format!("running job {name}"));
                answer.assert_waits_for(name);
                answer.assert_reads::<Job>(name);
                cluster.takeoff(&answer).unwrap();
            }
            cluster.complete_job(name);
        }
        let answer = call(&cluster, &resource()).unwrap();
        answer.assert_wants_exactly(&expected);
        answer.assert_message("all jobs have completed");
        assert!(answer.waiting().is_empty());
        assert!(cluster.plan(&answer).unwrap().is_ready());
    });
}

#[test]
fn a_failed_job_stops_it_with_the_reason() {
    both(|call| {
        let mut cluster = FakeCluster::new();
        cluster.takeoff(&call(&cluster, &resource()).unwrap()).unwrap();
        cluster.complete_job("p-one");
        cluster.takeoff(&call(&cluster, &resource()).unwrap()).unwrap();
        cluster.fail_job("p-two", "BackoffLimitExceeded", "exit code 1");
        let answer = call(&cluster, &resource()).unwrap();
        answer.assert_wants_exactly(&["Job.batch p-one", "Job.batch p-two"]);
        answer.assert_message("stopped at p-two: job has failed: BackoffLimitExceeded: exit code 1");
        let ready = Condition::ready(false, "Failed", "job has failed: BackoffLimitExceeded: exit code 1");
        assert_eq!(answer.desired.conditions(), [ready]);
    });
}

#[test]
fn only_the_step_that_was_named_fails_on_purpose() {
    both(|call| {
        let mut cluster = FakeCluster::new();
        let mut resource = resource();
        resource.spec.fail = Some("two".into());
        resource.spec.command = Some(vec!["true".into()]);
        cluster.takeoff(&call(&cluster, &resource).unwrap()).unwrap();
        cluster.complete_job("p-one");
        let answer = call(&cluster, &resource).unwrap();
        let command = |job: &str| {
            let spec = answer.assert_wants::<Job>(job).spec.unwrap().template.spec.unwrap();
            spec.containers[0].command.clone().unwrap().concat()
        };
        assert_eq!(command("p-one"), "true");
        assert!(command("p-two").contains("exit 1"));
    });
}

#[test]
fn the_plan_reads_like_what_happens() {
    let mut cluster = FakeCluster::new();
    cluster.takeoff(&cluster.run_blocking(pipeline, &resource()).unwrap()).unwrap();
    cluster.complete_job("p-one");
    let answer = cluster.run_blocking(pipeline, &resource()).unwrap();
    insta::assert_snapshot!(cluster.plan(&answer).unwrap(), @r"
    = keep default/Job.batch:p-one
    + create default/Job.batch:p-two
    … Job p-two to complete
    ");
}

#[test]
fn the_answer_as_a_snapshot() {
    let answer = FakeCluster::new().run_blocking(pipeline, &resource()).unwrap();
    insta::assert_json_snapshot!(answer, @r#"
    {
      "found": [],
      "missed": [
        "default/Job.batch:p-one"
      ],
      "resources": [
        {
          "apiVersion": "batch/v1",
          "kind": "Job",
          "metadata": {
            "name": "p-one"
          },
          "spec": {
            "backoffLimit": 0,
            "template": {
              "spec": {
                "containers": [
                  {
                    "env": [
                      {
                        "name": "STEP",
                        "value": "one"
                      }
                    ],
                    "image": "busybox",
                    "name": "step"
                  }
                ],
                "restartPolicy": "Never"
              }
            }
          }
        }
      ],
      "status": {
        "message": "running job p-one"
      },
      "waitingFor": [
        "Job p-one to complete"
      ]
    }
    "#);
    assert_eq!(answer.status::<PipelineStatus>().unwrap().message, "running job p-one");
}

#[test]
fn the_manifests_fit_the_types() {
    let manifest = document("airway.yaml", include_bytes!("../airway.yaml")).unwrap();
    assert_eq!(manifest, airway::airway(&Pipeline::crd(), "target/flights/pipeline.wasm", &[]));
    let text = airway::manifest("cargo run", std::slice::from_ref(&manifest));
    assert_eq!(document("text", text.as_bytes()).unwrap(), manifest);
    let instance = document("instance.yaml", include_bytes!("../instance.yaml")).unwrap();
    let parsed: Pipeline = serde_json::from_value(instance.clone()).unwrap();
    assert_eq!(serde_json::to_value(parsed).unwrap(), instance);
}
